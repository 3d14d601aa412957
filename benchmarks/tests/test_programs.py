"""The benchmark of small programs: its cases run at every size and dtype, and a row tells which system is slow."""

from __future__ import annotations

import pytest
import torch

from benchmarks.operator_cases import Case
from benchmarks.program_cases import cases, sizes
from benchmarks.programs import Row, rows, training


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("elements", [1_000, 20_000])
def test_cases_run(elements: int, dtype: torch.dtype) -> None:
    made = list(cases(sizes(elements, dtype)))
    assert len({case.name for case in made}) == len(made) > 50
    for case in made:
        if case.trains:
            training(case.function, case.tensors)()
        else:
            case.function(*case.tensors)


def test_sizes_have_about_the_elements_that_are_asked_for() -> None:
    for elements in (1_000, 100_000, 2_000_000):
        x = sizes(elements, torch.float32).matrix()
        assert 0.9 * elements < x.numel() <= elements
        assert 0.5 * elements < sizes(elements, torch.float32).images().numel() <= 1.5 * elements


def test_a_step_leaves_gradients_of_one_call() -> None:
    seen: list[torch.Tensor] = []

    def square(x: torch.Tensor) -> torch.Tensor:
        seen.append(x)
        return x * x

    step = training(square, (torch.tensor([3.0]),))
    step()
    step()
    assert seen[-1].grad is not None
    assert seen[-1].grad.item() == 6.0


def test_rows_are_of_the_forward_and_of_training() -> None:
    case = Case("sine", torch.sin, (torch.randn(30),), True)
    assert [row.name for row in rows(case, "few", stock=False, turns=1)] == [
        "sine, few",
        "sine, few, training",
    ]


def test_the_faster_of_the_others_counts() -> None:
    row = Row("sine", 4.0, 2.0, 3.0)
    assert row.ratio == 1.5
    assert str(row).split() == ["1.50", "sine", "eager", "4.0", "stock", "2.0", "fxstack", "3.0"]
