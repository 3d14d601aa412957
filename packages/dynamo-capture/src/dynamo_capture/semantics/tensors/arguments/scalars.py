"""Numbers that vary as arguments of tensor operations: put in terms of tensors, where the result is the same.

``x * a`` becomes ``x * t`` with ``t`` the float as a tensor without dimensions; what takes its number by name, or in
place of a tensor, is computed by its form (``polyfills/torch/forms.py``). Where there is neither, the number's value
is asked for: a version for each, and after some a graph break there.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import VARYING_NUMBER
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.polyfills.registry import FORMS, Form
from dynamo_capture.semantics.numbers import floats
from dynamo_capture.semantics.numbers.in_tensors import is_in_range
from dynamo_capture.sources.formulas import number
from dynamo_capture.values import Const, TensorValue, Value, is_none, tensors_of
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.floating import RuntimeFloat

_BINARY = (
    "add", "sub", "mul", "div", "truediv", "true_divide", "multiply", "divide", "subtract", "pow", "remainder", "mod",
    "fmod", "floordiv", "floor_divide", "lt", "le", "gt", "ge", "eq", "ne", "copysign", "xlogy",
)  # fmt: skip
_BESIDE = frozenset((*_BINARY, *(f"{name}_" for name in _BINARY), *(f"i{name}" for name in _BINARY)))
"""Names of functions and methods of two operands whose result is the same for a number and for a tensor without
dimensions beside a tensor with some."""
_DIVIDING = frozenset({"div", "divide"})
_OF_COMPLEX = frozenset({"add", "sub", "mul", "div", "truediv", "multiply", "divide", "subtract"})
_MAKERS = frozenset({"arange", "linspace", "logspace"})
"""Names of functions that make a tensor of numbers alone, which is not to be had in terms of other operations."""
_NUMBERS = frozenset({"alpha", "value"})
_OWN_EXPONENTS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, -0.5, -1.0, -2.0)
"""Powers for which torch's kernels, or their derivatives, have code of their own."""
_REDUCED = (torch.float16, torch.bfloat16)
_WIDE = (torch.float32, torch.float64)


def without_open_floats(
    tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]
) -> list[Value] | Value:
    """The arguments of a tensor operation, open floats replaced by tensors; or its result, computed in another way."""
    for keyword in _NUMBERS & kwargs.keys():
        given = kwargs[keyword]
        number = floats.of_tensor(tx, given) if isinstance(given, TensorValue) else None
        if number is not None:  # torch reads the number out of the tensor
            kwargs = {**kwargs, keyword: number}
    if not (any(value.is_open for value in args) or any(value.is_open for value in kwargs.values())):
        return args
    made = _of_numbers_alone(tx, name, args, kwargs) or _by_form(tx, name, args, kwargs)
    if made is not None:
        return made
    named = kwargs.keys() - ({"rounding_mode"} if name.removesuffix("_") in _DIVIDING else set())
    if len(args) == 2 and not named and name in _BESIDE:
        beside = _beside(tx, name, args)
        if beside is not None:
            return beside
    _limit(tx, name, [*args, *kwargs.values()])
    return args


def _of_numbers_alone(tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A new tensor of numbers as torch makes it, before the graph runs."""
    given = {key: value for key, value in kwargs.items() if not is_none(value)}
    if name not in _MAKERS or not given.keys() <= {"dtype", "device"} or torch.is_inference_mode_enabled():
        return None
    if "device" in given and torch.device(tx.constant(given["device"])).type != "cpu":
        return None
    dtype = tx.constant(given["dtype"]) if "dtype" in given else torch.get_default_dtype()
    made: Value | None = tx.numbers.tensor(name, dtype, args)
    return made


def _beside(tx: Context, name: str, args: list[Value]) -> list[Value] | None:
    """A number beside a tensor, as a tensor that promotes as the number does."""
    tensor = next((value for value in args if isinstance(value, TensorValue)), None)
    if tensor is None or tensor.meta.spec.device.type != "cpu":
        return None
    dtype = _dtype_beside(tensor)
    if tensor.meta.spec.dtype.is_complex and name.removesuffix("_").removeprefix("i") not in _OF_COMPLEX:
        return None
    if dtype is None:
        return None
    if "pow" in name and args[0] is tensor and _has_own_kernel(tx, args[1]):
        return _of_known_exponent(tx, args)
    operands = [_operand(tx, value, dtype) if value.is_open else value for value in args]
    swapped = name in ("add", "mul") and args[0] is not tensor  # as ``Tensor.__radd__`` and ``__rmul__`` do
    return operands[::-1] if swapped else operands


def _dtype_beside(tensor: TensorValue) -> torch.dtype | None:
    spec = tensor.meta.spec
    if spec.dtype.is_complex or spec.dtype.is_floating_point:
        if spec.rank:
            return torch.float64
        return spec.dtype if spec.dtype in _WIDE else None
    default = torch.get_default_dtype()
    return default if default in _WIDE else None


def _has_own_kernel(tx: Context, exponent: Value) -> bool:
    assert isinstance(exponent, RuntimeFloat)
    known = exponent.formula
    return known is not None and tx.facts.decide(known, "in", number(_OWN_EXPONENTS))


def _of_known_exponent(tx: Context, args: list[Value]) -> list[Value] | None:
    """The exponent as a constant, where nobody else would fix it: it comes out of a tensor that a guard can look at."""
    exponent = args[1]
    assert isinstance(exponent, RuntimeFloat)
    if exponent.can_be_fixed or exponent.formula is None:
        return None
    tx.facts.fix(exponent.formula)
    return [args[0], Const(float(exponent.formula.value))]


def _operand(tx: Context, value: Value, dtype: torch.dtype) -> Value:
    assert isinstance(value, RuntimeFloat)
    made = value.tensor()
    return made if dtype is torch.float64 else _cast(tx, made, dtype)


def _cast(tx: Context, tensor: TensorValue, dtype: torch.dtype) -> Value:
    return tx.tensors.call_method(tensor, "to", [Const(dtype)], {})


def _by_form(tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The operation by its form, where all tensors are of one dtype and in the CPU's memory; else None."""
    writes = name.endswith("_")
    found = FORMS.get(name.removesuffix("_"))
    if found is None or not _takes(found.function, len(args), tuple(kwargs)):
        return None
    if name == "truediv" and not args[0].is_open:
        return None
    if name in ("add", "sub", "subtract") and not kwargs:
        return None
    tensors = tensors_of((*args, *kwargs.values()))
    wide = _fits(found, tensors)
    if wide is None:
        return None
    if not _are_in_range(name, found, tensors, args, kwargs, wide):
        return None
    given = [_cast(tx, arg, torch.float32) if wide and isinstance(arg, TensorValue) else arg for arg in args]
    made = tx.inliner.call_function(Const(found.function), given, kwargs)
    if writes:
        return args[0].call_method(tx, "copy_", [made], {})
    return _cast(tx, made, tensors[0].meta.spec.dtype) if wide and isinstance(made, TensorValue) else made


def _are_in_range(
    name: str,
    found: Form,
    tensors: list[TensorValue],
    args: list[Value],
    kwargs: dict[str, Value],
    wide: bool,
) -> bool:
    """Whether torch converts the numbers to the tensors' dtype, on which the trace depends then. Numbers that may be
    too large for it are fixed, so that torch is shown them."""
    if name == "truediv":  # computed in a wider dtype
        return True
    named = kwargs.get("dtype")
    dtypes = [tensor.meta.spec.dtype for tensor in tensors]
    of_numbers = [dtype for dtype in dtypes if dtype is not torch.bool]
    masks = [] if found.of_masks else dtypes
    dtype = torch.float32 if wide else (*of_numbers, *masks, torch.get_default_dtype())[0]
    if named is not None and not is_none(named):
        dtype = named.as_constant()
    numbers = [
        value
        for value in (*args, *kwargs.values())
        if isinstance(value, RuntimeFloat) and value.is_open and value.formula is not None
    ]
    outside = [value for value in numbers if not is_in_range(value, dtype)]
    for value in outside:
        if value.can_be_fixed:
            value.fix()
    return not any(not value.is_open for value in outside)


def _fits(found: Form, tensors: list[TensorValue]) -> bool | None:
    """Whether to compute in float32; None where the form does not give what torch gives."""
    specs = [
        tensor.meta.spec for tensor in tensors if tensor.meta.spec.dtype is not torch.bool or found.any_dtype
    ]
    if any(tensor.meta.spec.device.type != "cpu" for tensor in tensors):
        return None
    if found.any_dtype:
        return False
    if found.of_masks and not specs and len(tensors) == 1:
        return False
    dtypes = {spec.dtype for spec in specs}
    if len(dtypes) != 1 or not specs[0].dtype.is_floating_point:
        return None
    if specs[0].dtype not in _REDUCED:
        return False
    return found.wide


@functools.lru_cache(maxsize=1024)
def _takes(function: Any, count: int, keywords: tuple[str, ...]) -> bool:
    try:
        inspect.signature(function).bind(*range(count), **dict.fromkeys(keywords))
    except TypeError:
        return False
    return True


def _limit(tx: Context, name: str, values: list[Value]) -> None:
    """A number has to be known: a version for each value, up to a few. Then the operation runs in Python, if it has no
    form at all; one that has a form for other tensors is too common for that."""
    if takes_numbers(name):
        return
    for value in values:
        known = value.formula if isinstance(value, RuntimeFloat) and value.is_unread else None
        if known is not None and tx.policy.has_too_many_values(f"{name}: {known}", known.value):
            raise GraphBreak(VARYING_NUMBER, f"{name} takes {known} as a number that must be known")


def takes_numbers(name: str) -> bool:
    """Whether an operation of this name computes with numbers that are given beside tensors, in whatever form."""
    return name in _BESIDE or name.removesuffix("_") in FORMS


def limit_sizes(tx: Context, function: Any, relied: int) -> None:
    """As ``_limit`` for sizes that the operation has fixed, by the relations relied on since there were ``relied``."""
    for guard in tx.env.guards[relied:]:
        relation = guard.relation
        if guard.fixes and tx.policy.has_too_many_values(
            f"{_name(function)}: {relation.lhs}", tx.env.hint(relation.rhs)
        ):
            raise GraphBreak(
                VARYING_NUMBER, f"{_name(function)} takes {relation.lhs} as a size that must be known"
            )


def limit_by_line(tx: Context, function: Any, tensors: Sequence[TensorValue]) -> None:
    """As ``limit_sizes`` for what the backend has fixed in earlier versions, of which only the line is known."""
    where = tx.where()
    if tx.policy.is_exhausted(where) and not all(tensor.meta.spec.is_static for tensor in tensors):
        raise GraphBreak(VARYING_NUMBER, f"{_name(function)} takes sizes that must be known to compile it")


def note_fixed(tx: Context, relied: int) -> None:
    """Remember for which sizes the backend has made code, by the relations relied on since there were ``relied``."""
    for guard in tx.env.guards[relied:]:
        if guard.fixes:
            tx.policy.note_fixed(guard.where, str(guard.relation.lhs), tx.env.hint(guard.relation.rhs))


def _name(function: Any) -> str:
    return getattr(function, "__name__", None) or repr(function)
