"""Index expressions and sizes as Triton text compute what they stand for."""

from __future__ import annotations

import pytest

from fx_interface.symbols import Symbol, evaluate, floordiv, maximum, minimum, mod, symbol
from inductor_codegen.codegen.triton.indices import index_text, size_text
from inductor_codegen.ir.index import Index, Quotient, Remainder, as_index, variable

S0, S1 = symbol("s0"), symbol("s1")
ROW, COLUMN = variable("i", 7), variable("j", 9)


class Language:
    """The two functions of ``triton.language`` that sizes need."""

    minimum = staticmethod(min)
    maximum = staticmethod(max)


@pytest.mark.parametrize(
    "size",
    [
        5,
        S0,
        S0 * S1 - 3,
        -2 * S0 + S1,
        floordiv(S0 + 1, 2) * S1,
        mod(S0, 3) * floordiv(S1, 2),
        minimum(S0, S1 + 2) * 4,
        maximum(S0 - S1, 0) + 1,
        S0 * S0 * 3,
    ],
    ids=str,
)
@pytest.mark.parametrize("values", [(2, 3), (11, 5)])
def test_sizes(size: object, values: tuple[int, int]) -> None:
    known = dict(zip((Symbol("s0"), Symbol("s1")), values, strict=True))
    text = size_text(size)  # type: ignore[arg-type]
    found = eval(text, {"tl": Language, "s0": values[0], "s1": values[1]})
    assert found == evaluate(size, known)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("index", "wanted"),
    [
        (Index(0), lambda i, j, s: 0),
        (ROW * 3 + COLUMN, lambda i, j, s: i * 3 + j),
        (ROW * -2 + Index(-1), lambda i, j, s: -2 * i - 1),
        (ROW * S0 + Index(S0), lambda i, j, s: i * s + s),
        (as_index(Quotient(ROW * 4 + COLUMN, 3)) * 2, lambda i, j, s: (4 * i + j) // 3 * 2),
        (as_index(Remainder(ROW + COLUMN, S0 + 1)) * S0, lambda i, j, s: (i + j) % (s + 1) * s),
    ],
)
def test_indices(index: Index, wanted: object) -> None:
    variables = {loop: name for name, value in (("i", ROW), ("j", COLUMN)) for loop, _ in value.terms}
    text = index_text(index, variables, lambda scalar: "never")  # type: ignore[arg-type]
    for i, j, s in ((0, 0, 2), (3, 5, 4), (6, 8, 13)):
        assert eval(text, {"i": i, "j": j, "s0": s}) == wanted(i, j, s)  # type: ignore[operator]
