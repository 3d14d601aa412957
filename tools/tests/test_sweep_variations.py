"""Calls made in other ways: the arguments are laid out as said, and what then disagrees with eager is found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

pytest.importorskip("torch.testing._internal.common_methods_invocations", exc_type=ImportError)

from operator_sweep.cases import Case, Sample, cases
from operator_sweep.comparison import difference, outcome
from operator_sweep.variations import HOW, LAYOUTS, varied
from operator_sweep.verdict import Status, verdict_of

X = torch.arange(12.0).view(3, 4)


def first(name: str, how: str) -> tuple[Case, Sample]:
    (case,) = (found for found in cases([name], (torch.float32,), how) if not found.in_place)
    return case, next(iter(varied(case, 1)))


@pytest.mark.parametrize("how", HOW)
def test_operators_are_as_eager(how: str) -> None:
    for name in ("mul", "cumsum"):
        for case in cases([name], (torch.float32,), how):
            found = verdict_of(case, 1)
            left_to_eager = (
                how == "out-wider" and name == "cumsum"
            )  # it sums in the dtype of what it is given
            assert found.status is (Status.BREAKS if left_to_eager else Status.PASS), (case.key, found.detail)


def test_layouts() -> None:
    made = {how: change(X) for how, change in LAYOUTS.items()}
    assert made["transposed"].stride() == (1, 3)
    assert made["strided"].stride()[-1] == 2
    assert made["expanded"].stride()[0] == 0
    assert all(torch.equal(made[how], X) for how in ("transposed", "strided"))
    assert torch.equal(made["expanded"][2], X[0])


def test_results_are_written_to_what_is_given() -> None:
    case, sample = first("cumsum", "out-strided")
    assert case.key == "cumsum@out-strided float32"
    found = outcome(sample.function, sample)
    assert found.lies_in == [len(found.inputs) - 1]
    assert found.results[0].stride()[-1] == 2


def test_a_wrong_second_derivative_is_found() -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> Any:
            (x,) = ctx.saved_tensors
            return grad * 3 * x.detach() * x

    sample = Sample(torch.clone, (X.clone().requires_grad_(),), {}, lambda result: result)
    for twice, kind in ((False, None), (True, "wrong")):
        told, found = (outcome(f, sample, twice=twice) for f in (lambda x: x**3, Cube.apply))
        what = difference(told, found, lambda: None)
        assert (what and what[0]) == kind
