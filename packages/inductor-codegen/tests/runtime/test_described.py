"""What the native description of tensors tells apart, beside the same question in Python."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from inductor_codegen.runtime.binding import described

MEMORY = torch.arange(24, dtype=torch.float32)
TENSORS = [
    MEMORY,
    MEMORY.data,
    MEMORY[1:],
    MEMORY[:23],
    MEMORY.view(4, 6),
    MEMORY.view(6, 4),
    MEMORY.view(6, 4).t(),
    MEMORY.view(torch.int32),
    MEMORY.clone(),
    MEMORY[3],
    torch.nn.Parameter(MEMORY),
    torch.empty(0),
]


def in_python(tensor: torch.Tensor, addresses: bool) -> tuple[Any, ...]:
    """What ``described`` is to tell of a tensor."""
    form = tensor.dtype, tensor.device, tensor.shape, tensor.stride()
    return (*form, tensor.data_ptr()) if addresses else form


@pytest.mark.parametrize("addresses", [True, False])
def test_equal_bytes_are_equal_descriptions(addresses: bool) -> None:
    for one, other in itertools.product(TENSORS, TENSORS):
        native = described((one,), (0,), addresses) == described([other], (0,), addresses)
        assert native == (in_python(one, addresses) == in_python(other, addresses))


def test_positions_in_their_order() -> None:
    values = (TENSORS[0], 3, TENSORS[4], None)
    both = described(values, (0, 2), True)
    assert both == described(values, (0,), True) + described(values, (2,), True)
    assert described(values, (2, 0), True) != both
    assert described(values, (), True) == b""


def test_what_is_no_tensor_is_refused() -> None:
    with pytest.raises(TypeError, match="int"):
        described((1,), (0,), True)
    for position in (2, -1):
        with pytest.raises(IndexError):
            described(TENSORS[:2], (position,), True)
