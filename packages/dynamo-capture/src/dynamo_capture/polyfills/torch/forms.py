"""Operations that take numbers, in terms of tensors without dimensions.

    torch.add(x, y, alpha=a)    ->    torch.addcmul(x, y, torch.as_tensor(a, dtype=x.dtype))

Each has the signature of the operation that it stands for, and rounds where torch's kernel for a number rounds. They
are traced into, where a number that is known only when the code runs is among the arguments. ``FORMS`` says by name
which there are, and for which tensors they give what eager gives. Products of matrices have none, as how a library
rounds them differs between processors: torch reads their numbers out of tensors (``fx_interface.composites.numbers``).
"""

from __future__ import annotations

from typing import Any

import torch

from dynamo_capture.polyfills.registry import form


def _like(value: Any, tensor: Any) -> Any:
    return torch.as_tensor(value, dtype=tensor.dtype)


def _of_default_dtype(value: Any) -> Any:
    return torch.as_tensor(value, dtype=torch.get_default_dtype())


@form("add")
def add(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    factor = _like(alpha, input)  # rounded to the tensors' dtype, also where the rest is computed in float32
    if input.dtype is torch.float16 or input.dtype is torch.bfloat16:
        wide = torch.addcmul(input.float(), other.float(), factor.float())
        return wide.to(input.dtype)
    return torch.addcmul(input, other, factor)


@form("sub", "subtract")
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    return torch.add(input, other, alpha=-alpha)


@form("addcmul", wide=True)
def addcmul(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    return torch.addcmul(input, tensor1 * _like(value, input), tensor2)


@form("addcdiv", wide=True)
def addcdiv(input: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    return torch.addcdiv(input, tensor1 * _like(value, input), tensor2)


@form("lerp", wide=True)
def lerp(input: Any, end: Any, weight: Any) -> Any:
    return torch.lerp(input, end, _like(weight, input))


@form("clamp", "clip")
def clamp(input: Any, min: Any = None, max: Any = None) -> Any:
    low = None if min is None else _like(min, input)
    high = None if max is None else _like(max, input)
    return torch.clamp(input, low, high)


@form("clamp_min")
def clamp_min(input: Any, min: Any) -> Any:
    return torch.clamp(input, _like(min, input), None)


@form("clamp_max")
def clamp_max(input: Any, max: Any) -> Any:
    return torch.clamp(input, None, _like(max, input))


@form("hardtanh")
def hardtanh(input: Any, min_val: Any = -1.0, max_val: Any = 1.0) -> Any:
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return torch.clamp(input, _like(min_val, input), _like(max_val, input))


@form("threshold", "_threshold")
def threshold(input: Any, threshold: Any, value: Any) -> Any:
    return torch.where(input <= _like(threshold, input), _like(value, input), input)


@form("leaky_relu")
def leaky_relu(input: Any, negative_slope: Any = 0.01) -> Any:
    return torch.where(input > 0, input, input * negative_slope)


@form("hardshrink")
def hardshrink(input: Any, lambd: Any = 0.5) -> Any:
    bound = _like(lambd, input)
    return torch.where((input >= -bound) & (input <= bound), _like(0.0, input), input)


@form("where", of_masks=True)
def where(condition: Any, input: Any, other: Any) -> Any:
    if condition.dtype is not torch.bool:  # the method: x.where(condition, other)
        condition, input = input, condition
    if not isinstance(input, torch.Tensor) and not isinstance(other, torch.Tensor):
        return torch.where(condition, _of_default_dtype(input), _of_default_dtype(other))
    like = input if isinstance(input, torch.Tensor) else other
    return torch.where(condition, _like(input, like), _like(other, like))


@form("masked_fill")
def masked_fill(input: Any, mask: Any, value: Any) -> Any:
    return torch.masked_fill(input, mask, _like(value, input))


@form("index_fill", any_dtype=True)
def index_fill(input: Any, dim: Any, index: Any, value: Any) -> Any:
    return torch.index_fill(input, dim, index, _like(value, input))


@form("fill", any_dtype=True)
def fill(input: Any, value: Any) -> Any:
    return torch.fill(input, _like(value, input))


@form("full_like", any_dtype=True)
def full_like(input: Any, fill_value: Any, *, dtype: Any = None) -> Any:
    made = torch.empty_like(input, dtype=dtype)
    return made.copy_(_like(fill_value, made))


@form("new_full", any_dtype=True)
def new_full(input: Any, size: Any, fill_value: Any, *, dtype: Any = None) -> Any:
    value = torch.as_tensor(fill_value, dtype=input.dtype if dtype is None else dtype)
    return value.expand(size).clone(memory_format=torch.contiguous_format)


@form("full", any_dtype=True)
def full(size: Any, fill_value: Any, *, dtype: Any = None) -> Any:
    value = torch.as_tensor(fill_value, dtype=torch.get_default_dtype() if dtype is None else dtype)
    return value.expand(size).clone(memory_format=torch.contiguous_format)


@form("scalar_tensor", any_dtype=True)
def scalar_tensor(s: Any, *, dtype: Any = None) -> Any:
    return torch.as_tensor(s, dtype=torch.get_default_dtype() if dtype is None else dtype)


@form("truediv", any_dtype=True)
def truediv(number: Any, tensor: Any) -> Any:
    return tensor.reciprocal() * number


@form("setitem", any_dtype=True)
def setitem(input: Any, index: Any, value: Any) -> Any:
    input[index] = _like(value, input)


form("gumbel_softmax")(torch.nn.functional.gumbel_softmax)
form("normalize")(torch.nn.functional.normalize)
"""Written in Python, and do with a number nothing but what has a form: they are their own."""
