"""Running steps: values go where they are needed, and are let go after that."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from aot_autograd.control_flow.driver import Slot, Step, driver


def test_values_constants_and_results_that_nobody_needs() -> None:
    steps = [
        Step(lambda x: (x + 1, x + 2), (Slot(0),), (Slot(1), None)),
        Step(lambda x, y: (x * y,), (Slot(1), 3), (Slot(2),)),
    ]
    outputs = (Slot(2), Slot(0), "text")
    assert driver(1, steps, outputs)(4) == (15, 4, "text")


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
    (alive,) = driver(1, steps, (Slot(3),))(torch.ones(2))
    assert not alive


def test_a_program_of_one_part_is_that_part() -> None:
    step = Step(lambda x, y: (x + y,), (Slot(0), Slot(1)), (Slot(2),))
    assert driver(2, [step], (Slot(2),)) is step.run
    assert driver(2, [step], (Slot(2), Slot(0)))(1, 2) == (3, 1)
    assert driver(1, [], (Slot(0), None))(1) == (1, None)


def test_a_step_without_results_runs() -> None:
    seen: list[int] = []
    driver(1, [Step(lambda x: seen.append(x) or (), (Slot(0),), ())], ())(7)
    assert seen == [7]
