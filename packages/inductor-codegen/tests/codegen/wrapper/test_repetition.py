"""Loops in the text of an entry stand for exactly the statements that were written, and save text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from inductor_codegen.codegen.wrapper import repetition
from inductor_codegen.codegen.wrapper.repetition import rolled

_HEAD = re.compile(r"    for \(int64_t it = 0; it < (\d+); it\+\+\) \{\n")


class Tables:
    def __init__(self) -> None:
        self.content: list[list[int]] = []

    def __call__(self, values: Sequence[int]) -> str:
        self.content.append(list(values))
        return f"t{len(self.content) - 1}"


def unrolled(texts: Sequence[str], tables: Tables) -> str:
    """What the loops do, statement by statement."""
    found = []
    for text in texts:
        head = _HEAD.match(text)
        if head is None:
            found.append(text)
            continue
        body = text[head.end() : -len("    }\n")]
        for number in range(int(head[1])):
            shown = re.sub(r"t(\d+)\[it\]", lambda m, n=number: str(tables.content[int(m[1])][n]), body)
            found.append(
                re.sub(
                    r"\((\d+) ([+-]) (\d+) \* it\)",
                    lambda m, n=number: str(int(m[1]) + (1 if m[2] == "+" else -1) * int(m[3]) * n),
                    shown,
                )
            )
    return "".join(found)


def kernel(name: str, *places: int) -> str:
    given = ", ".join(f"p[{place}]" for place in places)
    return f'    if (fx_run("{name} of p[1] and more", {name}, {given})) return fx_index_error("model.py:{name}");\n'


def layer(number: int, *, size: int = 40) -> list[str]:
    return [
        *(kernel(f"k{i}", number * size + i, number * size + i + 1) for i in range(size)),
        f"    fx_free(((H*)in)[{number * number + 7}]);\n",
        f"    out[{100 - number}] = fx_move(f.h[{number}]);\n",
    ]


def test_layers_are_one_loop() -> None:
    tables = Tables()
    steps = [kernel("first", 0), *(step for n in range(12) for step in layer(n)), kernel("last", 3)]
    texts = rolled(steps, tables)
    assert unrolled(texts, tables) == "".join(steps)
    assert tables.content == [[n * n + 7 for n in range(12)]]
    assert len(texts) == 3
    assert "".join(rolled([s for n in range(48) for s in layer(n)], Tables())).count("\n") == 44


def test_a_layer_that_differs_stands_between_two_loops() -> None:
    tables = Tables()
    layers = [layer(n) for n in range(9)]
    layers[4][20] = kernel("another", 4, 5)
    steps = [step for one in layers for step in one]
    texts = rolled(steps, tables)
    assert unrolled(texts, tables) == "".join(steps)
    assert [bool(_HEAD.match(text)) for text in texts].count(True) == 2
    assert sum(map(len, texts)) < 0.4 * sum(map(len, steps))


def test_little_text_stays_as_it_is() -> None:
    steps = [step for n in range(3) for step in layer(n, size=4)]
    assert rolled(steps, Tables()) == steps


def test_a_string_that_looks_like_a_place_is_none() -> None:
    steps = [f'    fx_at("p[{n}] {"x" * 900}");\n' for n in range(9)]
    assert rolled(steps, Tables()) == steps


def test_local_names_are_renamed_within_a_statement_only() -> None:
    steps = [
        f"    const H tensors_{2 * n}[] = {{f.h[{n}]}}; const H tensors_{2 * n + 1}[] = {{in[0]}};\n"
        f"    return fx_call(tensors_{2 * n + 1}, tensors_{2 * n}); {'/' * 900}\n"
        for n in range(5)
    ]
    (text,) = rolled(steps, Tables())
    assert "tensors_0[] = {f.h[(0 + 1 * it)]}; const H tensors_1[] = {in[0]}" in text
    mixed = [steps[0], steps[1].replace("fx_call(tensors_3, tensors_2)", "fx_call(tensors_2, tensors_3)")]
    assert rolled(mixed, Tables()) == mixed


@given(
    st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(0, 5), min_size=2, max_size=2)), max_size=40)
)
def test_any_steps(drawn: list[tuple[int, list[int]]]) -> None:
    kept, repetition.WORTH = repetition.WORTH, 1
    try:
        tables = Tables()
        steps = [kernel(f"k{kind}", *places) for kind, places in drawn]
        assert unrolled(rolled(steps, tables), tables) == "".join(steps)
    finally:
        repetition.WORTH = kept
