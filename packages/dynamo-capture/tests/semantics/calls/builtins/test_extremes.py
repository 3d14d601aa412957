"""``max`` and ``min``."""

from __future__ import annotations

import pytest

from dynamo_capture.values import Const, SymValue
from fx_interface.symbols import maximum, symbol


@pytest.mark.parametrize(
    "program",
    [
        lambda: (max(1, True), min(1, True), max(1.0, 1), min("ba"), max({"a": 3, "b": 1})),
        lambda: (
            max([1, -3], key=abs),
            min((), default="none"),
            max(iter([2, 5, 3])),
            max("a", "b", key=ord),
        ),
        lambda: (min(float("nan"), 1.0) != min(1.0, float("nan")), max(-0.0, 0.0), min(0.0, -0.0)),
        lambda: max([]),
        lambda: max(1),
        lambda: min(1, "a"),
        lambda: max([1], 2),
    ],
)
def test_the_first_of_equals_is_kept(agrees, program):
    agrees(program)


def test_of_sizes_that_vary_it_is_one_expression(tx):
    size = SymValue(symbol("s0"))
    assert str(Const(max).call(tx, [size, Const(3), Const(4)], {}).expr) == str(
        maximum(maximum(size.expr, 3), 4)
    )
