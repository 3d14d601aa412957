"""What kernels must move, that functions and their steps run on any device, and what is said of the rows."""

from __future__ import annotations

import pytest
import torch

from benchmarks.bandwidth import calls, summary
from benchmarks.bandwidth_cases import CASES, Case

BY_NAME = {case.name: case for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_forward_and_backward_run(case: Case) -> None:
    inputs = case.make(torch.float32, "cpu", 64)
    result = case.run(*(x.clone() for x in inputs))
    phases = calls(case.run, case, inputs, torch.ones_like(result))
    assert torch.is_tensor(phases["forward"]())
    assert case.forward_bytes(inputs, result) >= result.nbytes
    assert set(phases) == ({"forward", "step"} if case.gradients else {"forward"})
    if case.gradients:
        gradients = phases["step"]()
        assert [g.shape for g in gradients] == [x.shape for x in inputs[: case.gradients]]
        assert case.backward_bytes(inputs, result) > sum(g.nbytes for g in gradients)


@pytest.mark.parametrize(
    ("name", "forward", "backward"),
    [
        ("softmax", 2, 3),  # x, y; dy, x, dx
        ("transposed", 3, 3),
        ("batch_norm", 3, 5),  # x twice, y; dy and x twice, dx
        ("adam", 7, 0),
    ],
)
def test_bytes_that_must_move(name: str, forward: int, backward: int) -> None:
    case = BY_NAME[name]
    inputs = case.make(torch.float32, "cpu", 64)
    result = case.run(*(x.clone() for x in inputs))
    weights = sum(x.nbytes for x in inputs if x.dim() == 1)
    assert case.forward_bytes(inputs, result) == forward * result.nbytes + weights
    if backward:
        assert case.backward_bytes(inputs, result) == backward * result.nbytes + weights


def test_the_summary_counts_what_is_slower() -> None:
    row = {"function": "f", "dtype": "float32", "phase": "forward", "eager": 1, "copy": 100}
    text = summary([row | {"stock": 80, "fxstack": 90}, row | {"stock": 100, "fxstack": 80, "phase": "step"}])
    assert "2 rows: median 0.85 of a copy" in text
    assert "(1): f float32 step 0.80" in text
