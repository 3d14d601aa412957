"""How a library operator is reached from native code: a C function that writes into given memory, one that returns new
tensors, torch's dispatcher by name, or a call through Python, in this order of cost."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import Enum
from typing import Final

import torch
from torch._ops import OpOverload

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike
from inductor_codegen.codegen.wrapper.arguments import Unspeakable, Values, bound_arguments, c_arguments
from inductor_codegen.codegen.wrapper.buffers.placement import call_buffers, qualified_name
from inductor_codegen.codegen.wrapper.routes.stable_values import stable_values
from inductor_codegen.ir.program import Argument, Buffer, BufferRef, CallExtern
from inductor_codegen.runtime.binding import exports

CPU = torch.device("cpu")
Shapes = Sequence[tuple[IntLike, ...]]


class RouteKind(Enum):
    """The ways."""

    GIVEN_MEMORY = "given memory"
    NEW_TENSORS = "new tensors"
    DISPATCHER = "dispatcher"
    PYTHON = "python"


@dataclass(frozen=True, slots=True)
class Route:
    """A way to an operator; ``function`` is the C function's name, empty for Python."""

    kind: RouteKind
    function: str = ""


PYTHON = Route(RouteKind.PYTHON)


@dataclass(frozen=True, slots=True)
class OutVariant:
    """A C function that writes the one result into the tensor given first; ``shape`` of the operands is its size.

    ``function`` has a place for the device type.
    """

    function: str
    shape: Callable[[Shapes], tuple[IntLike, ...] | None]


def _matmul(first: int) -> Callable[[Shapes], tuple[IntLike, ...] | None]:
    def shape(operands: Shapes) -> tuple[IntLike, ...] | None:
        lhs, rhs = operands[first], operands[first + 1]
        return (*lhs[:-1], rhs[-1]) if len(lhs) == len(rhs) and len(lhs) > 1 and lhs[-1] == rhs[-2] else None

    return shape


def _like_first(operands: Shapes) -> tuple[IntLike, ...] | None:
    return operands[0]


WRITING: Final = frozenset(
    {
        torch.ops.aten.index_put_.default,
        torch.ops.aten.index_copy_.default,
        torch.ops.aten.scatter_.src,
        torch.ops.aten.masked_scatter_.default,
        torch.ops.aten.copy_.default,
    }
)
"""Operators that write to their first argument and give it back."""

OUT_VARIANTS: Mapping[str, OutVariant] = {
    "aten::mm": OutVariant("aoti_torch_{}_mm_out", _matmul(0)),
    "aten::addmm": OutVariant("aoti_torch_{}_addmm_out", _matmul(1)),
    "aten::bmm": OutVariant("aoti_torch_{}_bmm_out", _matmul(0)),
    "aten::baddbmm": OutVariant("aoti_torch_{}_baddbmm_out", _matmul(1)),
    "aten::_int_mm": OutVariant("aoti_torch_{}__int_mm_out", _matmul(0)),
    "aten::scatter.src": OutVariant("aoti_torch_{}_scatter_src_out", _like_first),
    "aten::scatter.value": OutVariant("aoti_torch_{}_scatter_value_out", _like_first),
}
"""Operators with a function for given memory, by qualified name. Only used where the result's size provably is what
the function will write, because torch resizes an ``out`` of another size."""


def route_of(call: CallExtern, buffers: Mapping[str, Buffer], memory: torch.device = CPU) -> Route:
    """The cheapest way to run ``call`` in a program that allocates on the device ``memory``."""
    if call.op.namespace != "aten":
        return PYTHON
    if call.op in WRITING:
        return _by_name(call)
    device = _device_type(call, buffers)
    scalars = exact_scalars(call, buffers)
    if not _speakable(lambda: c_arguments(call, _Anything(), scalars)):
        return _by_name(call)
    variant = OUT_VARIANTS.get(qualified_name(call.op))
    if variant is not None and device == memory.type and _writes(variant, call, buffers):
        given = variant.function.format(device)
        if exports(given):
            return Route(RouteKind.GIVEN_MEMORY, given)
    function = _function_of(call.op, device)
    if function is None or not _returns_tensors(call.op):
        return _by_name(call)
    return Route(RouteKind.NEW_TENSORS, function)


def routes_of(
    calls: Sequence[CallExtern], buffers: Mapping[str, Buffer], memory: torch.device = CPU
) -> dict[int, Route]:
    """The routes of calls, by their ids: found once for calls that differ in which buffers they take."""
    known: dict[Hashable, Route] = {}
    found: dict[int, Route] = {}
    for call in calls:
        form = (
            call.op,
            *[_form(arg, buffers) for arg in call.args],
            *[(name, _form(arg, buffers)) for name, arg in call.kwargs],
            *[None if one is None else (one.dtype, one.sizes, one.device) for one in call.results],
        )
        route = known.get(form)
        if route is None:
            route = known[form] = route_of(call, buffers, memory)
        found[id(call)] = route
    return found


def _form(argument: Argument, buffers: Mapping[str, Buffer]) -> Hashable:
    """An argument, tensors by what a route depends on."""
    if isinstance(argument, BufferRef):
        buffer = buffers[argument.name]
        return (BufferRef, buffer.dtype, buffer.sizes, buffer.device)
    if isinstance(argument, tuple):
        return (tuple, *[_form(part, buffers) for part in argument])
    return (type(argument), argument)


def _device_type(call: CallExtern, buffers: Mapping[str, Buffer]) -> str:
    """The type of the device whose kernel torch's dispatcher would choose: a GPU's if any argument is on one."""
    given = {buffers[name].device.type for name in call_buffers(call)}
    types = given or {result.device.type for result in call.results if result is not None} or {"cpu"}
    return "cpu" if types == {"cpu"} else max(types - {"cpu"})


def _by_name(call: CallExtern) -> Route:
    is_known = not call.op._schema.is_mutable or call.op in WRITING
    usable = exports("torch_call_dispatcher") and _returns_tensors(call.op) and is_known
    if usable and _speakable(lambda: stable_values(call, _Anything())):
        return Route(RouteKind.DISPATCHER)
    return PYTHON


def _returns_tensors(op: OpOverload) -> bool:
    """Whether it returns tensors, at least one: after a call without results the stack still holds the arguments."""
    returns = op._schema.returns
    return bool(returns) and all(str(value.type) == "Tensor" for value in returns)


def exact_scalars(call: CallExtern, buffers: Mapping[str, Buffer]) -> bool:
    """Whether a Scalar may be passed as a double without changing the result's type: all tensors are floating-point."""
    return all(buffers[name].dtype.is_floating_point for name in call_buffers(call))


def may_fail_on_values(call: CallExtern, buffers: Mapping[str, Buffer]) -> bool:
    """Whether the operator may reject the values of its tensors, not only their sizes: indices, or linear algebra."""
    named = qualified_name(call.op)
    return "linalg" in named or "cholesky" in named or not exact_scalars(call, buffers)


def _function_of(op: OpOverload, device: str) -> str | None:
    name = op._opname if op._overloadname == "default" else f"{op._opname}_{op._overloadname}"
    for function in (f"aoti_torch_{device}_{name}", f"aoti_torch_aten_{name}"):
        if exports(f"{function}_v2"):
            return f"{function}_v2"
        if exports(function):
            return function
    return None


def _writes(variant: OutVariant, call: CallExtern, buffers: Mapping[str, Buffer]) -> bool:
    operands = [value for declared, value in bound_arguments(call) if declared.type == "Tensor"]
    shapes = [buffers[value.name].sizes for value in operands if isinstance(value, BufferRef)]
    (result,) = call.results
    return result is not None and variant.shape(shapes) == result.sizes


class _Anything(Values):
    def handle(self, name: str) -> str:
        return name

    def number(self, name: str) -> str:
        return name


def _speakable(write: Callable[[], object]) -> bool:
    try:
        write()
    except (Unspeakable, KeyError):
        return False
    return True
