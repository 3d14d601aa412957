"""The numbers in tensors of one element, natively and in Python."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fx_guards import _native, lone_numbers
from fx_guards.contents import in_python
from fx_guards.torch_bridge import calibration

_READ = (torch.float32, torch.float64, torch.int32, torch.int64)
_OTHERS = (torch.float16, torch.bfloat16, torch.bool, torch.uint8, torch.complex64)


@pytest.fixture(autouse=True)
def calibrated() -> None:
    found = calibration()
    assert found is not None
    assert found.layout is not None


def _in_both(tensors: list[torch.Tensor], others: list[torch.Tensor]) -> tuple[Any, Any]:
    """What Python says, and what the native reading says, which may leave the answer to Python."""
    return in_python(tensors, others), _native.lone_numbers(tuple(tensors), tuple(others))


@pytest.mark.parametrize("dtype", _READ)
@pytest.mark.parametrize("number", [0, 3, -7, 2**31 - 1, 0.1, float("inf")])
def test_numbers_are_read_from_memory(dtype: torch.dtype, number: float) -> None:
    if not dtype.is_floating_point and isinstance(number, float):
        number = -(2**31)
    tensors = [torch.tensor(number, dtype=dtype), torch.nn.Parameter(torch.tensor([2.5]))]
    by_python, natively = _in_both(tensors, [torch.ones(3)])
    assert natively == by_python == [tensors[0].item(), 2.5]
    assert type(natively[0]) is type(by_python[0])


def test_a_part_of_other_memory_or_more_than_one_element_is_refused() -> None:
    alone = torch.zeros(())
    for other in (torch.zeros(2), torch.zeros(2)[0], torch.zeros(0), torch.zeros(1).expand(3)):
        assert _in_both([alone, other], []) == (None, None)


def test_shared_memory_is_refused() -> None:
    one, two = torch.ones(()), torch.full((), 2.0)
    assert _in_both([one, two], [torch.ones(4)]) == ([1.0, 2.0], [1.0, 2.0])
    assert _in_both([one, one], []) == (None, None)
    assert _in_both([one, two], [two.view(1)]) == (None, None)
    shared = torch.ones(4)
    assert _in_both([one], [shared, shared[:2]]) == (None, None)


@pytest.mark.parametrize("dtype", _OTHERS)
def test_other_dtypes_are_left_to_python(dtype: torch.dtype) -> None:
    tensor = torch.ones((), dtype=dtype)
    assert _native.lone_numbers((tensor,), ()) is NotImplemented
    assert lone_numbers([tensor], []) == [tensor.item()]


def test_what_memory_does_not_hold_as_it_is_is_left_to_python() -> None:
    class Own(torch.Tensor):
        pass

    for tensor in (torch._neg_view(torch.ones(())), torch.ones(()).as_subclass(Own)):
        assert _native.lone_numbers((tensor,), ()) is NotImplemented
    assert lone_numbers([torch._neg_view(torch.ones(()))], []) == [-1.0]
    assert _native.lone_numbers((torch.empty((), device="meta"),), ()) is NotImplemented


def test_inference_tensors_and_tensors_with_a_history_are_read() -> None:
    with torch.inference_mode():
        made = torch.ones(())
    history = torch.ones((), requires_grad=True) * 3
    assert _in_both([made, history], []) == ([1.0, 3.0], [1.0, 3.0])


def test_anything_but_tensors_is_left_to_python() -> None:
    assert _native.lone_numbers((1,), ()) is NotImplemented
    assert _native.lone_numbers((), (None,)) is NotImplemented
    assert _native.lone_numbers((), ()) == []
    with pytest.raises(TypeError, match="two tuples"):
        _native.lone_numbers([], [])  # type: ignore[arg-type]
