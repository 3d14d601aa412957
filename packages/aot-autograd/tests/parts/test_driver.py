"""Running steps: values go where they are needed, and are let go after that."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from aot_autograd.parts.driver import Driver, Slot, Step, with_last_uses


def test_values_constants_and_results_that_nobody_needs() -> None:
    steps = [
        Step(lambda x: (x + 1, x + 2), (Slot(0),), (Slot(1), None)),
        Step(lambda x, y: (x * y,), (Slot(1), 3), (Slot(2),)),
    ]
    outputs = (Slot(2), Slot(0), "text")
    assert Driver(3, with_last_uses(steps, outputs), outputs)(4) == (15, 4, "text")


def test_a_value_is_let_go_after_its_last_use() -> None:
    made: list[Any] = []

    def make(x: torch.Tensor) -> tuple[torch.Tensor]:
        made.append(weakref.ref(value := x + 1))
        return (value,)

    def look(_: torch.Tensor) -> tuple[bool]:
        return (made[0]() is not None,)

    steps = [
        Step(make, (Slot(0),), (Slot(1),)),
        Step(lambda x: (x.sum(),), (Slot(1),), (Slot(2),)),
        Step(look, (Slot(2),), (Slot(3),)),
    ]
    (alive,) = Driver(4, with_last_uses(steps, (Slot(3),)), (Slot(3),))(torch.ones(2))
    assert not alive
