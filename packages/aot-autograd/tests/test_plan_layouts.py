"""What the forward saves may lie otherwise than its spec says; the plan is told."""

from __future__ import annotations

import torch

from aot_autograd.plan import BackwardPlan, SavedInput, SavedOutput
from fx_interface.tensor_spec import TensorSpec


def test_saved_results_by_the_backwards_inputs() -> None:
    specs = tuple(TensorSpec((2, 3), (3, 1), torch.float32, torch.device("cpu")) for _ in range(3))
    saved = (SavedInput(0), SavedOutput(4), SavedOutput(2))
    plan = BackwardPlan((7,), saved, (), (), (), (), saved_specs=specs)
    assert plan.inputs_from_results() == {2: 4, 3: 2}
    assert [spec.strides for spec in plan.laid_out({3: (1, 2)}).saved_specs] == [(3, 1), (3, 1), (1, 2)]
    assert plan.laid_out({}) == plan
