"""Tensors that replacement code makes or changes while it runs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from dynamo_capture.foundation.libraries.distributed_tensors import is_distributed
from dynamo_capture.runtime.replacement_calls import set_attribute


def as_class(results: Sequence[torch.Tensor], index: int, cls: type) -> torch.Tensor:
    """A result of the graph as an instance of a subclass, past what the class makes of operations. It has the tensor's
    history, whether gradients are on where the graph ends or not.

    It is the graph's own view where it is one: that has noted when its memory was written to, which a second one would
    not know. A tensor that others hold (a backend may give back its input) keeps its class."""
    is_held = _holders(results, index) != _ONE_HOLDER
    value = results[index]
    with torch._C.DisableTorchFunction():
        if type(value) is torch.Tensor and not is_held and value._is_view():
            with contextlib.suppress(TypeError):  # the class has slots of its own
                value.__class__ = cls
                return value
        with torch.enable_grad():
            return torch.Tensor.as_subclass(value, cls)


def _holders(results: Sequence[torch.Tensor], index: int) -> int:
    """How many references there are to a result."""
    return sys.getrefcount(results[index])


_ONE_HOLDER = _holders((torch.empty(0),), 0)


def own_class(value: torch.Tensor, cls: type) -> torch.Tensor:
    """An instance of a subclass in the same memory, without a history: ``torch.Tensor._make_subclass``."""
    made: torch.Tensor = torch.Tensor._make_subclass(cls, value)
    return made


def follow(tensor: torch.Tensor, followed: bool) -> None:
    """``tensor.requires_grad_(followed)``, past what the tensor's class makes of operations."""
    with torch._C.DisableTorchFunction():
        tensor.requires_grad_(followed)


def follow_all(followed: tuple[bool, ...], tensors: tuple[torch.Tensor, ...]) -> None:
    """``follow`` each tensor, or not."""
    for tensor, each in zip(tensors, followed, strict=True):
        follow(tensor, each)


def unbound(modes: tuple[bool, bool], whole: torch.Tensor, dim: int) -> tuple[torch.Tensor, ...]:
    """``whole.unbind(dim)``, as it was called with gradients and inference mode on or off."""
    with torch.inference_mode(modes[1]), torch.set_grad_enabled(modes[0]):
        return torch.Tensor.unbind(whole, dim)


def split(
    modes: tuple[bool, bool], whole: torch.Tensor, sizes: list[int], dim: int
) -> tuple[torch.Tensor, ...]:
    """``whole.split(sizes, dim)``, as it was called with gradients and inference mode on or off."""
    with torch.inference_mode(modes[1]), torch.set_grad_enabled(modes[0]):
        made: tuple[torch.Tensor, ...] = torch.Tensor.split(whole, sizes, dim)  # type: ignore[no-untyped-call]
        return made


def new_parameter(tensor: torch.Tensor, requires_grad: bool) -> torch.nn.Parameter:
    """A parameter in the memory of a tensor."""
    return torch.nn.Parameter(tensor, requires_grad)


def new_leaf(spec: Any, writes: int) -> torch.nn.Parameter:
    """A parameter of the form of a static ``TensorSpec``, whose data are going to be set; it has counted ``writes``."""
    with torch._C.DisableTorchFunction():
        made = torch.empty_strided(spec.sizes, spec.strides, dtype=spec.dtype, device=spec.device)
        leaf = torch.nn.Parameter(made)
        if writes:
            torch._C._autograd._unsafe_set_version_counter((leaf,), (writes,))
        return leaf


def set_data(tensor: torch.Tensor, data: torch.Tensor) -> None:
    """``tensor.data = data``."""
    tensor.data = data


def read_only_array(tensor: torch.Tensor) -> Any:
    """A tensor as an array that cannot be written to."""
    array = tensor.numpy()
    array.setflags(write=False)
    return array


def new_wrapper(cls: type, form: Mapping[str, Any], attributes: Mapping[str, Any]) -> torch.Tensor:
    """A tensor that dispatches in Python, without running the class's own ``__new__`` or ``__init__``."""
    if is_distributed(cls):
        return new_distributed(cls, **attributes)
    made: torch.Tensor = torch.Tensor._make_wrapper_subclass(cls, **form)
    for name, value in attributes.items():
        set_attribute(made, name, value)
    return made


def new_distributed(
    cls: type, _local_tensor: torch.Tensor, _spec: Any, requires_grad: bool = False, **attributes: Any
) -> torch.Tensor:
    """A distributed tensor, of the part of it that this process has and of what says how it is spread."""
    make: Any = torch.Tensor._dtensor__new__
    made: torch.Tensor = make(cls, _local_tensor, _spec, requires_grad=requires_grad)
    for name, value in attributes.items():
        set_attribute(made, name, value)
    return made


def sparse_of(
    places: torch.Tensor, stored: torch.Tensor, sizes: tuple[int, ...], is_coalesced: bool
) -> torch.Tensor:
    """A sparse tensor in coordinate layout, with the history of what is ``stored``, whether gradients are on where the
    graph ends or not."""
    with torch.enable_grad():
        return torch.sparse_coo_tensor(
            places, stored, sizes, is_coalesced=is_coalesced or None, check_invariants=False
        )
