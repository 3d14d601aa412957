"""Specs describe real tensors exactly, and say how they lie in memory."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fx_interface import TensorSpec, contiguous_strides, spec_of
from fx_interface.symbols import symbol
from fx_interface.tensor_spec import located

CPU = torch.device("cpu")


@given(st.lists(st.integers(0, 5), max_size=4))
def test_contiguous_strides_are_torchs(sizes: list[int]) -> None:
    tensor = torch.empty(sizes)
    assert contiguous_strides(sizes) == tensor.stride()
    spec = spec_of(tensor)
    assert spec == TensorSpec(tuple(sizes), tensor.stride(), torch.float32, CPU)
    assert (spec.numel, spec.rank) == (tensor.numel(), tensor.dim())
    if tensor.numel():
        assert spec.is_contiguous


@pytest.mark.parametrize(
    "tensor, contiguous",
    [
        (torch.empty(3, 4).t(), False),
        (torch.empty(3, 1).t(), True),
        (torch.empty(1, 4)[:, ::2], False),
        (torch.empty(4).expand(3, 4), False),
        (torch.empty(()), True),
    ],
)
def test_contiguity_is_torchs(tensor: torch.Tensor, contiguous: bool) -> None:
    assert spec_of(tensor).is_contiguous is contiguous is tensor.is_contiguous()


def test_symbolic_shapes() -> None:
    size = symbol("s0")
    spec = TensorSpec((size, 4), contiguous_strides((size, 4)), torch.float32, CPU)
    assert spec.is_contiguous
    assert not spec.is_static
    assert spec.numel is 4 * size
    assert contiguous_strides((2, size, 3)) == (3 * size, 3, 1)
    assert str(spec) == "float32[s0, 4]"


@pytest.mark.parametrize(
    "tensor",
    [
        torch.empty(()),
        torch.empty(4, 3),
        torch.empty(4, 3)[1:, ::2],
        torch.empty(4, 1).expand(4, 5),
        torch.empty(2, 0, 3),
        torch.empty(0),
    ],
)
def test_the_extent_is_what_a_copy_of_the_memory_takes(tensor: torch.Tensor) -> None:
    wanted = torch.empty_strided(tensor.shape, tensor.stride()).untyped_storage().nbytes() // 4
    assert spec_of(tensor).extent == wanted
    assert spec_of(tensor).numel == tensor.numel()


def test_gradients_and_devices_are_told() -> None:
    spec = spec_of(torch.ones(2, dtype=torch.float64, requires_grad=True))
    assert (spec.requires_grad, spec.dtype) == (True, torch.float64)
    assert str(TensorSpec((2,), (3,), torch.int8, torch.device("cuda", 1))) == "int8[2] strides [3] cuda:1"


def test_devices_have_the_index_of_what_is_made_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    assert located(torch.device("cuda")) == torch.device("cuda", 3)
    assert located(torch.device("cuda", 1)) == torch.device("cuda", 1)
    assert located(CPU) == CPU
    assert located(torch.device("meta")) == torch.device("meta")
