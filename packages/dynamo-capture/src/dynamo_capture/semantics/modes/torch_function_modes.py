"""``TorchFunctionMode``: objects of the program that are asked about each function of torch inside of a block.

    with mode:
        y = x + 1          ->   mode.__torch_function__(Tensor.add, (), (x, 1)), with ``mode`` off the stack meanwhile

Modes that the function is called in are traced in the same way: objects that are read from torch's stack
(``guard_kinds.interpreters.function_modes``), which are taken off it while the graph runs.

What torch would hand to a mode is learnt from torch, as for tensor subclasses: the function runs once on stand-ins,
under a mode that notes what it is given. The program's mode is then traced like any function of the program, and the
graph holds what comes of it. It is left to Python where a graph would end inside of the block.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from dynamo_capture.foundation.break_kinds import OTHER_INTERPRETER
from dynamo_capture.foundation.break_positions import Stopped
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.leaf_functions import is_torch_builtin
from dynamo_capture.semantics.registry import handles
from dynamo_capture.values import NONE, Const, ObjectValue, TupleValue, Value
from dynamo_capture.values.base import Context
from fx_interface.torch_internals.function_modes import default_devices_kept

_LEADING_TO_SUCH = frozenset({"boolean_dispatch.<locals>.fn", "meshgrid"})
"""Functions of torch that call one which asks the modes."""
_TENSOR_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)


class Spread(dict[str, Value]):
    """Keyword arguments out of ``**mapping``: torch hands an empty mapping on, and None where there is none."""


class FunctionModes:
    """The modes of one trace. ``active``: those that are asked, innermost last; ``entered``: how many the program has
    entered and not left, whether they are asked now or not; ``around``: those that it is called in."""

    def __init__(self) -> None:
        self.active: list[Value] = []
        self.around: list[Value] = []
        self.entered = 0
        self.devices: Callable[[], None] | None = None
        """What puts the default devices back that the program has changed."""

    def surround(self, modes: list[Value]) -> None:
        """The program is called in these modes."""
        for mode in modes:
            _check_is_mode(mode)
        self.around = modes
        self.active = list(modes)

    @property
    def has_changed(self) -> bool:
        """Whether there are other modes than those that the program was called in."""
        return len(self.active) != len(self.around) or any(
            now is not then for now, then in zip(self.active, self.around, strict=True)
        )

    def __bool__(self) -> bool:
        return bool(self.active)

    @contextmanager
    def without(self, count: int) -> Iterator[None]:
        """The innermost ``count`` modes are not asked inside."""
        taken = self.active[len(self.active) - count :]
        before = list(self.active)
        del self.active[len(self.active) - count :]
        rest = list(self.active)
        try:
            yield
        except Stopped:
            if taken:
                raise GraphBreak(OTHER_INTERPRETER, "inside of what a TorchFunctionMode is asked") from None
            raise
        finally:
            if self.active != rest:
                raise GraphBreak(OTHER_INTERPRETER, "a TorchFunctionMode changes which modes there are")
            self.active[:] = before
            assert taken == before[len(rest) :]

    def ask(
        self, tx: Context, function: Any, classes: list[type], args: Value, kwargs: Value | None
    ) -> Value:
        """What the innermost mode makes of a function of torch."""
        mode = self.active[-1]
        passed = [Const(function), TupleValue([Const(cls) for cls in classes]), args]
        if kwargs is not None:
            passed.append(kwargs)
        with self.without(1):
            answer = tx.force(mode.get_attr(tx, "__torch_function__").call(tx, passed, {}))
        if answer.stands_for(NotImplemented):
            raise GraphBreak(OTHER_INTERPRETER, "a TorchFunctionMode leaves an operation to others")
        return answer


def looks_for_modes(function: Any) -> bool:
    """Whether a function of torch written in Python asks the modes, so that it is traced into while there are some.
    Its code tells: torch's own list (``get_overridable_functions``) reads names that a program may replace."""
    if not isinstance(function, types.FunctionType):
        return False
    code, module = function.__code__, str(function.__globals__.get("__name__"))
    return module.partition(".")[0] == "torch" and (
        "handle_torch_function" in code.co_names or code.co_qualname in _LEADING_TO_SUCH
    )


def is_asked_about(function: Any) -> bool:
    """Whether torch asks modes when this function, which is not written in Python, is called."""
    if is_torch_builtin(function) or function in (torch._C._set_grad_enabled, torch.device):
        return True
    if isinstance(function, _TENSOR_METHODS):
        return function.__objclass__ is torch._C.TensorBase
    if isinstance(function, types.MethodWrapperType):
        return getattr(function.__self__, "__objclass__", None) is torch._C.TensorBase
    return False


@handles(torch.get_default_device)
def get_default_device(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if tx.tensors.modes:
        raise GraphBreak(OTHER_INTERPRETER, "the default device is asked for, for which torch makes a tensor")
    return Const(tx.fold(torch.get_default_device))


@handles(torch.set_default_device)
def set_default_device(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """It is set for what is traced from here on, and for the program behind the graph, which states its devices."""
    modes: FunctionModes = tx.tensors.modes
    device = tx.constant(args[0] if args else kwargs["device"])
    if tx.blocks or modes.entered:
        raise GraphBreak(OTHER_INTERPRETER, "the default device is set inside of a block of a mode")
    if modes.active and device is not None:
        asked = modes.ask(tx, torch.device, [], TupleValue([Const(device)]), None)
        device = tx.constant(asked)
    if modes.devices is None:
        modes.devices = default_devices_kept()
    tx.fold(lambda: torch.set_default_device(device))
    tx.effects.deferred(torch.set_default_device, [Const(device)], {})
    return NONE


def _check_is_mode(mode: Value) -> None:
    if not isinstance(mode, ObjectValue) or not issubclass(mode.python_type(), TorchFunctionMode):
        raise GraphBreak(OTHER_INTERPRETER, f"{mode.describe()} is entered as a TorchFunctionMode")


@handles(torch._C._push_on_torch_function_stack, least=1)
def push(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    mode, modes = tx.force(args[0]), tx.tensors.modes
    apart = tx.policy.modes_apart
    if apart is not None:
        raise GraphBreak(
            OTHER_INTERPRETER, f"a TorchFunctionMode is entered, and inside of the block {apart}"
        )
    _check_is_mode(mode)
    modes.active.append(mode)
    modes.entered += 1
    return NONE


@handles(torch._C._pop_torch_function_stack)
def pop(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    modes: FunctionModes = tx.tensors.modes
    apart = tx.policy.modes_apart
    if not modes.active:
        raise GraphBreak(OTHER_INTERPRETER, "a TorchFunctionMode is left that was entered elsewhere")
    if apart is not None:
        raise GraphBreak(OTHER_INTERPRETER, f"a TorchFunctionMode is left, and then {apart}")
    modes.entered -= 1
    return modes.active.pop()


@handles(torch._C._len_torch_function_stack)
def depth(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Const(torch._C._len_torch_function_stack() + len(tx.tensors.modes.active))


@handles(torch._C._get_function_stack_at, least=1)
def mode_at(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    place: int = tx.constant(args[0]) - torch._C._len_torch_function_stack()
    active: list[Value] = tx.tensors.modes.active
    if not 0 <= place < len(active):
        raise GraphBreak(OTHER_INTERPRETER, "a mode is asked for that was entered elsewhere")
    return active[place]


@handles(torch._C._is_torch_function_mode_enabled)
def is_enabled(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Const(bool(tx.tensors.modes) or torch._C._is_torch_function_mode_enabled())


def classes_of(tx: Context, args: list[Value]) -> list[type]:
    """The classes that ``handle_torch_function`` finds among its relevant arguments."""
    found: list[type] = []
    for value in args:
        cls = tx.force(value).python_type()
        own = getattr(cls, "__torch_function__", None)
        if own is None or own is torch._C._disabled_torch_function_impl or cls in found:
            continue
        place = next((i for i, known in enumerate(found) if issubclass(cls, known)), len(found))
        found.insert(place, cls)
    return found


def set_switch(tx: Context, setter: Callable[..., Any], value: Any) -> bool:
    """Have the modes asked about a switch that a context manager of torch sets; whether there are any to ask."""
    if not tx.tensors.modes or not is_asked_about(setter):
        return False
    tx.calls.call_known(Const(setter), [Const(value)], {})
    return True
