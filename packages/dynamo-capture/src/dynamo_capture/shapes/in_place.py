"""Operators in place: what they refuse is found out while they are captured, as for operators that make new tensors.

    x.clamp_(0, 1)    of a bool ``x``, ``x.add_(1.5)`` of integers, ``x.add_(y)`` where ``y`` has more elements

A graph that fails there when it runs would have done other effects of the program before, or left them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch._ops import OpOverload

from dynamo_capture.foundation.errors import DataDependent
from dynamo_capture.shapes.inferring import Inferring
from dynamo_capture.shapes.kernels import ask_kernel, check_kernel
from fx_interface.errors import UnsupportedProgramError
from fx_interface.operator_facts.functional_overloads import functional_overload
from fx_interface.symbols import Relation, ShapeEnv
from fx_interface.tensor_spec import TensorSpec

_NAMES: Final = {
    torch.bool: "Bool", torch.uint8: "Byte", torch.int8: "Char", torch.int16: "Short", torch.int32: "Int",
    torch.int64: "Long", torch.float16: "Half", torch.bfloat16: "BFloat16", torch.float32: "Float",
    torch.float64: "Double", torch.complex64: "ComplexFloat", torch.complex128: "ComplexDouble",
}  # fmt: skip
"""What torch's errors call dtypes."""


def check_write(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Raises what ``func`` raises for arguments of these forms: where its functional counterpart does, or has a result
    that the tensor cannot take."""
    functional = functional_overload(func)
    if not isinstance(getattr(args[0], "spec", None), TensorSpec):
        return
    if functional is None:  # ``x.polygamma_(n)``: ``polygamma`` takes them in another order
        ask_kernel(inference, func, args, kwargs)
        return
    env, target = inference.env, args[0].spec
    try:
        made = inference.spec_of(functional, args, _with_defaults(func, functional, args, kwargs))
    except (UnsupportedProgramError, DataDependent):
        return
    except NotImplementedError:
        ask_kernel(inference, func, args, kwargs)
        return
    if not isinstance(made, TensorSpec):
        return
    check_kernel(inference, func, args, kwargs)
    by_data = any(env.is_from_data(size) for size in (*made.sizes, *target.sizes))
    fits = by_data or _same_sizes(made, target, env)
    if torch.Tag.pointwise not in func.tags:
        if not fits or made.dtype is not target.dtype:
            ask_kernel(inference, func, args, kwargs)
        return
    if not fits:
        found, given = ([env.specialize(size) for size in spec.sizes] for spec in (made, target))
        raise RuntimeError(f"output with shape {given} doesn't match the broadcast shape {found}")
    if not torch.can_cast(made.dtype, target.dtype):
        ask_kernel(inference, func, args, kwargs)  # which may have other words
        names = (_NAMES.get(dtype, str(dtype)) for dtype in (made.dtype, target.dtype))
        raise RuntimeError("result type {} can't be cast to the desired output type {}".format(*names))


def _with_defaults(
    func: OpOverload, functional: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The keyword arguments, with what only ``func`` has a default for: ``x.bernoulli_()`` is ``bernoulli(x, 0.5)``."""
    needed = {argument.name for argument in functional._schema.arguments if not argument.has_default_value()}
    left_out = [argument for argument in func._schema.arguments[len(args) :] if argument.name not in kwargs]
    defaults = {a.name: a.default_value for a in left_out if a.has_default_value() and a.name in needed}
    return {**kwargs, **defaults} if defaults else kwargs


def _same_sizes(one: TensorSpec, other: TensorSpec, env: ShapeEnv) -> bool:
    return len(one.sizes) == len(other.sizes) and all(
        env.decide(Relation("==", a, b)) for a, b in zip(one.sizes, other.sizes, strict=True)
    )
