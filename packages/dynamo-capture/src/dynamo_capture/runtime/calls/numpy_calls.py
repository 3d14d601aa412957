"""Calls of numpy as operations of a graph: numpy itself computes, on the memory of the graph's tensors.

    np.linalg.norm(x.numpy(), axis=0)      ->      torch.ops.dynamo_capture.numpy([x], 3)

The last argument names the call: the function, its other arguments, and the form of what it gives. A call that gives
another form than it gave while it was traced, since data decide about it, raises; the frame then runs as it is written.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an array among the operands; ``is_number``: of a number, which numpy does not take for an array;
    ``is_float``: of a float of Python."""

    index: int
    is_number: bool
    is_float: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """What is known of a result."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    is_number: bool

    @classmethod
    def of(cls, result: Any) -> Form:
        """The form of an array or number; TypeError or ValueError where torch has no such tensors."""
        tensor = as_tensor(result)
        return cls(tuple(tensor.shape), tensor.stride(), tensor.dtype, not hasattr(result, "flat"))

    def admits(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor has this form; strides of dimensions with no more than one element mean nothing."""
        strides = zip(self.shape, self.strides, tensor.stride(), strict=False)
        alike = (tuple(tensor.shape), tensor.dtype) == (self.shape, self.dtype)
        return alike and all(one == other for size, one, other in strides if size > 1)


@dataclass(frozen=True, slots=True, eq=False)
class NumpyCall:
    """``function(*args, **kwargs)``, in which each ``Place`` stands for an operand; ``forms`` of what is new in it."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    forms: tuple[Form, ...]

    def __call__(self, operands: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        arrays = [operand.detach().numpy() for operand in operands]
        result = self.function(*filled(self.args, arrays), **filled(self.kwargs, arrays))
        made = [as_tensor(part) for part in new_parts(result, arrays)]
        if len(made) != len(self.forms) or not all(
            form.admits(tensor) for form, tensor in zip(self.forms, made, strict=True)
        ):
            raise RuntimeError(f"numpy's {self.function!r} gives another form than it gave before")
        return made


def filled(template: Any, arrays: Sequence[Any]) -> Any:
    """A template with arrays in their places."""
    match template:
        case Place(index, is_number, is_float):
            array = arrays[index]
            return array.item() if is_float else array[()] if is_number else array
        case list():
            return [filled(item, arrays) for item in template]
        case tuple() if type(template) is tuple:
            return tuple([filled(item, arrays) for item in template])
        case dict():
            return {name: filled(item, arrays) for name, item in template.items()}
        case slice():
            return slice(*(filled(part, arrays) for part in (template.start, template.stop, template.step)))
    return template


def parts_of(result: Any) -> list[Any]:
    """The arrays and numbers of a result, in order."""
    if isinstance(result, (list, tuple)):
        return [part for item in result for part in parts_of(item)]
    return [result]


def new_parts(result: Any, arrays: Sequence[Any]) -> list[Any]:
    """Those of them with memory of their own."""
    return [part for part in parts_of(result) if shown_by(part, arrays) is None]


def shown_by(part: Any, arrays: Sequence[Any]) -> int | None:
    """The place of the array whose memory is shown, if any."""
    import numpy

    if not isinstance(part, numpy.ndarray):
        return None
    shares = (place for place, array in enumerate(arrays) if numpy.may_share_memory(array, part))
    return next(shares, None)


def as_tensor(part: Any) -> torch.Tensor:
    """An array or number as a tensor, with its memory where it may be written to."""
    import numpy

    array = numpy.asarray(part)
    return torch.from_numpy(array if array.flags.writeable else array.copy(order="K"))


_CALLS: list[NumpyCall] = []
_NAMES: dict[Any, int] = {}


def name_of(call: NumpyCall) -> int:
    """The number by which a graph names the call; equal calls have one."""
    key = (call.function, pickle.dumps((call.args, call.kwargs)), call.forms)
    if key not in _NAMES:
        _CALLS.append(call)
        _NAMES[key] = len(_CALLS) - 1
    return _NAMES[key]


def _compute(operands: Sequence[torch.Tensor], name: int) -> list[torch.Tensor]:
    return _CALLS[name](operands)


def _describe(operands: Sequence[torch.Tensor], name: int) -> list[torch.Tensor]:
    forms, device = _CALLS[name].forms, operands[0].device
    return [torch.empty_strided(f.shape, f.strides, dtype=f.dtype, device=device) for f in forms]


_OWN: list[Any] = []


@cache
def operator() -> Any:
    """The operator of a graph; declared when the first program needs it."""
    library: Any = torch.library.Library("dynamo_capture", "FRAGMENT")  # type: ignore[no-untyped-call]
    library.define("numpy(Tensor[] operands, int name) -> Tensor[]")
    library.impl("numpy", _compute, "CPU")
    library.impl("numpy", _describe, "Meta")
    _OWN.append(library)
    return torch.ops.dynamo_capture.numpy.default
