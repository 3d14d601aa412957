"""Context managers of torch that change a mode: gradients on and off, inference mode, autocast.

The mode is changed for real while tracing (and put back when the trace ends), so that whatever asks sees it, and a node
changes it when the graph runs.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

from dynamo_capture.calls.registry import handles
from dynamo_capture.errors import GraphBreak
from dynamo_capture.values import NONE, Const, FunctionValue, Value

enter_autocast: Any = getattr(torch.amp, "_enter_autocast")  # noqa: B009
exit_autocast: Any = getattr(torch.amp, "_exit_autocast")  # noqa: B009
"""What a graph calls to enter and leave autocast: the functions that torch's own captured graphs call."""

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace


def set_grad(tx: Trace, enabled: bool) -> None:
    """Turn gradients on or off from here on."""
    if torch.is_grad_enabled() == enabled:
        return
    torch._C._set_grad_enabled(enabled)
    tx.output.call("call_function", torch._C._set_grad_enabled, (enabled,), {}, None, tx.where(), pure=False)


class ContextValue(Value):
    """A context manager object that the translator knows."""

    __slots__ = ("source",)

    def __init__(self) -> None:
        self.source = None

    def enter(self, tx: Trace) -> Value:
        """``__enter__``."""
        return NONE

    def leave(self, tx: Trace, raised: Value) -> Value:
        """``__exit__``; the result says whether the exception is swallowed."""
        return NONE

    def truth(self, tx: Trace) -> bool:
        return True

    def get_attr(self, tx: Trace, name: str) -> Value:
        if name in ("__enter__", "__exit__"):
            from dynamo_capture.values import BuiltinMethod

            return BuiltinMethod(self, name)
        return super().get_attr(tx, name)

    def call_method(self, tx: Trace, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__enter__":
            return self.enter(tx)
        if name == "__exit__":
            return self.leave(tx, args[1] if len(args) > 1 else NONE)
        return super().call_method(tx, name, args, kwargs)

    def call(self, tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """As a decorator."""
        return ContextFunction(self, args[0])


class ContextFunction(Value):
    """A function decorated by a context manager."""

    __slots__ = ("function", "manager", "source")

    def __init__(self, manager: ContextValue, function: Value) -> None:
        self.manager = manager
        self.function = function
        self.source = None

    def python_type(self) -> type:
        return self.function.python_type()

    def call(self, tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
        self.manager.enter(tx)
        try:
            return self.function.call(tx, args, kwargs)
        finally:
            self.manager.leave(tx, NONE)


class GradMode(ContextValue):
    """``no_grad``, ``enable_grad`` and ``set_grad_enabled``."""

    __slots__ = ("cls", "enabled", "previous")

    def __init__(self, enabled: bool, cls: type) -> None:
        super().__init__()
        self.enabled = enabled
        self.cls = cls
        self.previous: list[bool] = []

    def python_type(self) -> type:
        return self.cls

    def enter(self, tx: Trace) -> Value:
        self.previous.append(torch.is_grad_enabled())
        set_grad(tx, self.enabled)
        return NONE

    def leave(self, tx: Trace, raised: Value) -> Value:
        set_grad(tx, self.previous.pop())
        return NONE


@handles(torch.no_grad)
def no_grad(tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    manager = GradMode(False, torch.no_grad)
    return manager.call(tx, args, {}) if args else manager


@handles(torch.enable_grad)
def enable_grad(tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    manager = GradMode(True, torch.enable_grad)
    return manager.call(tx, args, {}) if args else manager


@handles(torch.set_grad_enabled)
def set_grad_enabled(tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    enabled = tx.truth(args[0] if args else kwargs["mode"])
    made = GradMode(enabled, torch.set_grad_enabled)
    made.previous = [torch.is_grad_enabled()]
    set_grad(tx, enabled)
    made.previous.append(made.previous[0])
    return _SetGradEnabled(made)


class _SetGradEnabled(ContextValue):
    """``set_grad_enabled`` takes effect when it is made; leaving the block restores what was before."""

    __slots__ = ("inner",)

    def __init__(self, inner: GradMode) -> None:
        super().__init__()
        self.inner = inner

    def python_type(self) -> type:
        return torch.set_grad_enabled

    def leave(self, tx: Trace, raised: Value) -> Value:
        set_grad(tx, self.inner.previous[0])
        return NONE


@handles(torch._C._set_grad_enabled)
def set_grad_directly(tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    set_grad(tx, tx.truth(args[0]))
    return NONE


@handles(torch.inference_mode)
def inference_mode(tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise GraphBreak("CAP237", "inference mode is entered inside the compiled function")


class Autocast(ContextValue):
    """``torch.autocast``."""

    __slots__ = ("entered", "settings")

    def __init__(self, settings: tuple[Any, ...]) -> None:
        super().__init__()
        self.settings = settings
        self.entered: list[tuple[Any, Any]] = []

    def python_type(self) -> type:
        return torch.autocast

    def enter(self, tx: Trace) -> Value:
        mode = enter_autocast(*self.settings)
        node = tx.output.call(
            "call_function", enter_autocast, self.settings, {}, None, tx.where(), pure=False
        )
        self.entered.append((mode, node))
        tx.autocasts.append(self)
        return NONE

    def leave(self, tx: Trace, raised: Value) -> Value:
        mode, node = self.entered.pop()
        exit_autocast(mode)
        tx.autocasts.remove(self)
        tx.output.call("call_function", exit_autocast, (node,), {}, None, tx.where(), pure=False)
        return NONE


def leave_all(tx: Trace) -> list[Autocast]:
    """Leave the blocks that a graph ends in; they are entered again, in this order, by what follows it."""
    entered = list(tx.autocasts)
    if len(set(map(id, entered))) < len(entered):
        raise GraphBreak("CAP241", "inside a block of an autocast object that is entered twice")
    for block in reversed(entered):
        block.leave(tx, NONE)
    return entered


@handles(torch.autocast)
def autocast(tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    names = ("device_type", "dtype", "enabled", "cache_enabled")
    settings: dict[str, Any] = {"dtype": None, "enabled": True, "cache_enabled": None}
    settings.update({name: tx.constant(value) for name, value in zip(names, args, strict=False)})
    settings.update({name: tx.constant(value) for name, value in kwargs.items()})
    return Autocast(tuple(settings[name] for name in names))


class NullContext(ContextValue):
    """``contextlib.nullcontext``."""

    __slots__ = ("result",)

    def __init__(self, result: Value) -> None:
        super().__init__()
        self.result = result

    def python_type(self) -> type:
        return contextlib.nullcontext

    def enter(self, tx: Trace) -> Value:
        return self.result


@handles(contextlib.nullcontext)
def nullcontext(tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return NullContext(args[0] if args else kwargs.get("enter_result", NONE))


@handles(torch.autograd.profiler.record_function)
def record_function(tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return NullContext(NONE)


__all__ = ["Autocast", "Const", "ContextValue", "FunctionValue", "GradMode", "set_grad"]
