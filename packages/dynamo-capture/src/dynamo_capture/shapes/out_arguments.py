"""``out=``: an operator's result goes to a tensor that is given, and that takes the result's sizes.

A tensor without elements is resized; where another one is, eager warns, so the graph ends before the call. What form
the tensor takes is asked of torch's own kernel, which runs on tensors without data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch._ops import OpOverload

from dynamo_capture.foundation.errors import OUT_ARGUMENT
from dynamo_capture.shapes.inferring import Inferring
from fx_interface.errors import UnsupportedProgramError
from fx_interface.operator_facts.functional_overloads import (
    FACTORY_OPTIONS,
    argument_names,
    functional_overload,
    is_factory,
    out_names,
)
from fx_interface.symbols import Expr, Relation, ShapeEnv
from fx_interface.symbols.conditions import AllOf, decide
from fx_interface.tensor_spec import TensorSpec, contiguous_strides

CASTING = frozenset((
    "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_or",
    "bitwise_xor", "copysign", "cos", "cosh", "div", "eq", "erf", "erfc", "exp", "exp2", "expm1",
    "fmax", "fmin", "fmod", "ge", "gt", "hypot", "le", "lgamma", "log", "log10", "log1p", "log2",
    "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "lt", "maximum", "minimum",
    "mul", "ne", "pow", "reciprocal", "remainder", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "sub",
    "tan", "tanh", "xlogy",
))  # fmt: skip
"""Operators that compute in the dtype of their result and cast to that of ``out=``, where numbers of the one may become
the other."""


def take_sizes(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[tuple[Any, TensorSpec]]:
    """The ``out=`` tensors that an operator resizes, each with the form that it takes. Raises what the operator raises.

    UnsupportedProgramError CAP403 for what eager does with a warning, or with an exception that only it knows.
    """
    targets: list[Any] = [kwargs.get(name) for name in out_names(func)]
    if not targets:
        return []
    if any(isinstance(target, (list, tuple)) for target in targets) or functional_overload(func) is None:
        _check_forms(inference, func, args, kwargs)
        return []
    if not all(hasattr(target, "spec") for target in targets):
        raise UnsupportedProgramError(
            OUT_ARGUMENT, f"{func} writes to an out= that is no tensor of the graph"
        )
    results = _results(inference, func, args, kwargs, targets[0])
    for target, spec in zip(targets, results, strict=True):
        _check_dtype(func, target.spec.dtype, spec.dtype)
    resized = [
        (target, spec)
        for target, spec in zip(targets, results, strict=True)
        if not _same_sizes(target.spec, spec, inference.env)
    ]
    if not resized:
        return []
    if any(inference.env.specialize(target.spec.numel) != 0 for target, _ in resized):
        raise UnsupportedProgramError(OUT_ARGUMENT, f"{func} resizes the tensor that it is given as out=")
    functional = functional_overload(func)
    is_new = functional is not None and is_factory(functional)
    if is_new and any(inference.env.specialize(spec.numel) == 0 for _, spec in resized):
        # kernels that count elements keep the form of an out= that has none either
        raise UnsupportedProgramError(OUT_ARGUMENT, f"{func} makes no elements, as its out= has none")
    tried = dict(zip(map(id, targets), _tried(inference, func, args, kwargs), strict=True))
    return [(target, _form(func, spec, tried[id(target)], inference.env)) for target, spec in resized]


def _check_forms(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Tensors in a list, and those of an operator that has no other form, are to be formed as they will be."""
    targets = [_items(kwargs.get(name)) for name in out_names(func)]
    given = [target for items in targets for target in items]
    if not all(hasattr(target, "spec") for target in given):
        raise UnsupportedProgramError(
            OUT_ARGUMENT, f"{func} writes to an out= that is no tensor of the graph"
        )
    functional = functional_overload(func)
    if functional is not None:
        spec = inference.spec_of(
            functional, args, {k: v for k, v in kwargs.items() if k not in out_names(func)}
        )
        made = [one for part in _items(spec) for one in _items(part)]
        if len(made) != len(given):
            raise UnsupportedProgramError(
                OUT_ARGUMENT, f"{func} gets an out= of {len(given)} tensors for {len(made)}"
            )
        for target, one in zip(given, made, strict=True):
            _check_dtype(func, target.spec.dtype, one.dtype)
    tried = [item for one in _tried(inference, func, args, kwargs) for item in _items(one)]
    for target, after in zip(given, tried, strict=True):
        if _numbers(target.spec.sizes, inference.env) != tuple(after.shape):
            raise UnsupportedProgramError(OUT_ARGUMENT, f"{func} resizes a tensor that it is given in out=")
        if (
            _numbers(target.spec.strides, inference.env) != after.stride()
            or target.spec.dtype is not after.dtype
        ):
            raise UnsupportedProgramError(OUT_ARGUMENT, f"{func} changes the form of a tensor in out=")


def _items(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _numbers(sizes: Sequence[Any], env: ShapeEnv) -> tuple[int, ...]:
    return tuple(env.specialize(n) if isinstance(n, Expr) else n for n in sizes)


def _results(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any], target: Any
) -> Sequence[TensorSpec]:
    functional = functional_overload(func)
    if functional is None:
        raise UnsupportedProgramError(OUT_ARGUMENT, f"what sizes {func} gives to its out= is not known")
    outs = out_names(func)
    options = {name: value for name, value in kwargs.items() if name not in outs}
    if is_factory(functional) and not FACTORY_OPTIONS & argument_names(func):
        options |= {"dtype": target.dtype, "device": target.device}
    spec = inference.spec_of(functional, args, options)
    found = (spec,) if isinstance(spec, TensorSpec) else spec
    if len(found) != len(outs) or not all(isinstance(one, TensorSpec) for one in found):
        raise UnsupportedProgramError(OUT_ARGUMENT, f"the results of {functional} are not what {func} writes")
    return found


def _check_dtype(func: OpOverload, given: torch.dtype, made: torch.dtype) -> None:
    """Kernels cast to the dtype of ``out=``, compute in it, or refuse it, each as it likes."""
    casts = func._schema.name.removeprefix("aten::") in CASTING
    if made is not given and not (casts and torch.can_cast(made, given)):
        raise UnsupportedProgramError(OUT_ARGUMENT, f"{func} gives {made} to an out= of {given}")


def _same_sizes(one: TensorSpec, other: TensorSpec, env: ShapeEnv) -> bool:
    if len(one.sizes) != len(other.sizes):
        return False
    return decide(
        AllOf(tuple(Relation("==", a, b) for a, b in zip(one.sizes, other.sizes, strict=True))), env
    )


def _tried(
    inference: Inferring, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[torch.Tensor]:
    """The ``out=`` tensors after a call on tensors of these sizes that have no data."""
    env = inference.env

    def without_data(value: Any) -> Any:
        spec = getattr(value, "spec", None)
        if isinstance(spec, TensorSpec):
            sizes, strides = [env.hint(n) for n in spec.sizes], [env.hint(n) for n in spec.strides]
            return torch.empty_strided(sizes, strides, dtype=spec.dtype, device="meta")
        if isinstance(value, (list, tuple)):
            return type(value)(map(without_data, value))
        return env.hint(value.node.value) if isinstance(value, torch.SymInt) else value

    ready = {name: without_data(value) for name, value in kwargs.items()}
    try:
        with torch._C._DisableTorchDispatch(), torch.no_grad():
            func(*map(without_data, args), **ready)
    except NotImplementedError as error:
        raise UnsupportedProgramError(
            OUT_ARGUMENT, f"{func} gives its out= a form that is not known"
        ) from error
    return [ready[name] for name in out_names(func)]


def _form(func: OpOverload, spec: TensorSpec, tried: torch.Tensor, env: ShapeEnv) -> TensorSpec:
    """The result's sizes with the strides that the kernel has chosen: the result's own, or rows one after another."""
    sizes = tuple(map(env.simplify, spec.sizes))
    for strides in (spec.strides, contiguous_strides(sizes)):
        given = tuple(env.hint(n) if isinstance(n, Expr) else n for n in strides)
        if given == tried.stride() and tuple(env.hint(n) for n in sizes) == tuple(tried.shape):
            return replace(spec, sizes=sizes, strides=strides, dtype=tried.dtype)
    raise UnsupportedProgramError(OUT_ARGUMENT, f"{func} gives its out= the strides {tried.stride()}")
