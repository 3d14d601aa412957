"""Who is accurate enough: measured against float64, beside eager, and against what rounding alone moves."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from fxstack_dashboard.measuring.accuracy import Outcome, judge
from fxstack_dashboard.measuring.steps import make_step
from fxstack_dashboard.suites.workload import Workload


def _linear() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 8))


LINEAR = Workload("linear", _linear, lambda: (torch.randn(16, 8),))


def _outcome(workload: Workload, phase: str = "training") -> Outcome:
    return make_step(workload, phase, "cpu").outcome()


@pytest.mark.parametrize("phase", ["inference", "training"])
def test_eager_is_as_good_as_itself(phase: str) -> None:
    found = judge(LINEAR, phase, "cpu", _outcome(LINEAR, phase), _outcome(LINEAR, phase))
    assert found.problem is None
    assert 0 < found.backend == found.eager < found.allowed
    assert found.reference == "float64"


@pytest.mark.parametrize(
    "name", ["result", "gradient of 0.weight", "gradient of 2.bias", "buffer 1.running_var"]
)
def test_one_wrong_tensor_is_named(name: str) -> None:
    wrong = _outcome(LINEAR)
    wrong[name] = wrong[name] * 1.001
    found = judge(LINEAR, "training", "cpu", _outcome(LINEAR), wrong)
    assert (found.problem or "").startswith(f"{name} is 0.001 from float64")
    assert found.backend == pytest.approx(1e-3, rel=0.01)


@pytest.mark.parametrize(
    "change, problem",
    [
        (lambda x: x[:1], "in eager torch.float32[16, 8]"),
        (lambda x: x.double(), "result is torch.float64"),
        (lambda x: x.index_fill(0, torch.tensor(0), float("nan")), "NaN in other places"),
        (lambda x: x.index_fill(0, torch.tensor(0), float("inf")), "infinities in other places"),
    ],
)
def test_another_kind_of_result_is_wrong(change: object, problem: str) -> None:
    wrong = _outcome(LINEAR)
    wrong["result"] = change(wrong["result"])  # type: ignore[operator]
    assert problem in (judge(LINEAR, "training", "cpu", _outcome(LINEAR), wrong).problem or "")
    del wrong["result"]
    found = judge(LINEAR, "training", "cpu", _outcome(LINEAR), wrong)
    assert found.problem == "result is in only one of the results of eager and of the backend"
    counted = _outcome(LINEAR)
    counted["buffer 1.num_batches_tracked"] += 1
    found = judge(LINEAR, "training", "cpu", _outcome(LINEAR), counted)
    assert found.problem == "buffer 1.num_batches_tracked differs from eager"


def test_a_gradient_that_cancels_is_measured_against_all_gradients() -> None:
    other = _outcome(LINEAR)
    bias = other["gradient of 0.bias"]  # the batch norm takes means away: rounding noise
    assert bias.norm() < 1e-6 * other["gradient of 0.weight"].norm()
    other["gradient of 0.bias"] = bias * 2
    assert judge(LINEAR, "training", "cpu", _outcome(LINEAR), other).problem is None


class _Step(nn.Module):
    """Whether the sum of its parameters is above one, which a rounding decides."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.Parameter(torch.full((10,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        return x + (self.parts.sum() > 1.0).to(x.dtype)


def test_what_a_rounding_decides_may_be_otherwise() -> None:
    workload = Workload("step", _Step, lambda: (torch.ones(4),), phases=("inference",))
    eager = _outcome(workload, "inference")
    other = {"result": torch.where(eager["result"] > 1.5, 1.0, 2.0)}
    found = judge(workload, "inference", "cpu", eager, other)
    assert found.problem is None
    assert judge(workload, "inference", "cpu", eager, {"result": eager["result"] + 100}).problem is not None


class _Half(nn.Module):
    """Does not run in float64: its weight is made inside."""

    def forward(self, x: Tensor) -> Tensor:
        return x @ torch.ones(8, 8)


def test_without_a_reference_eager_is_it() -> None:
    workload = Workload("half", _Half, lambda: (torch.randn(4, 8),), phases=("inference",))
    eager = _outcome(workload, "inference")
    found = judge(workload, "inference", "cpu", eager, eager)
    assert (found.reference, found.backend, found.problem) == ("eager", 0.0, None)
    assert judge(workload, "inference", "cpu", eager, {"result": eager["result"] * 1.01}).problem is not None
