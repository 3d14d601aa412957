"""Tensors without data."""

from __future__ import annotations

import torch

from dynamo_capture.shapes import Inference
from dynamo_capture.shapes.library import TrialLibrary
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec


def test_a_tensor_with_a_history_has_the_strides_of_its_spec() -> None:
    """``contiguous()`` of a part of a tensor was taken to be nothing: the tensor that stood for it had no gaps."""
    inference = Inference(TrialLibrary(), ShapeEnv())
    spec = TensorSpec((2, 3), (4, 1), torch.float32, torch.device("cpu"))
    part = inference.tensor(spec, requires_grad=True, is_leaf=False)
    assert part.stride() == (4, 1)
    assert part.grad_fn is not None
    made = inference.run(torch.Tensor.contiguous, (part,), {})
    assert made is not part
    assert made.stride() == (3, 1)
