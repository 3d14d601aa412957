"""Inputs of a part's form."""

from __future__ import annotations

import pytest
import torch

from aot_autograd.control_flow.examples import example_of
from fx_interface.errors import UnsupportedProgramError
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec


def test_the_form_is_the_specs_and_what_requires_grad_is_computed() -> None:
    env = ShapeEnv()
    size = env.create_symbol(5)
    (atom,) = env.symbols
    spec = TensorSpec((size, 3), (1, size), torch.float64, torch.device("cpu"))
    made = example_of(spec, True, {atom: 5})
    assert (made.shape, made.stride(), made.dtype) == ((5, 3), (1, 5), torch.float64)
    assert made.requires_grad
    assert not made.is_leaf
    assert not made._is_view()
    assert not example_of(spec, False, {atom: 5}).requires_grad


def test_sizes_from_data_have_no_example() -> None:
    env = ShapeEnv()
    spec = TensorSpec((env.create_symbol(None),), (1,), torch.float64, torch.device("cpu"))
    with pytest.raises(UnsupportedProgramError, match="AOT124"):
        example_of(spec, False, {})
