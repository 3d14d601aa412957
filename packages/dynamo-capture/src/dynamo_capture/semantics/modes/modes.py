"""Modes of torch: gradients on and off, inference mode, autocast, default devices, which attention kernels may be used.

A mode is changed for real while tracing (and put back when the trace ends), so that whatever asks sees it, and a node
changes it when the graph runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node
from torch.utils._device import DeviceContext

from dynamo_capture.foundation.break_kinds import (
    DESCRIPTOR,
    NOT_RESUMABLE,
    TORCH_STATE_CHANGED,
)
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.given_warnings import SilentWarnings
from dynamo_capture.semantics.messages import warn
from dynamo_capture.semantics.modes.contexts import ContextValue
from dynamo_capture.semantics.modes.settings import read
from dynamo_capture.semantics.modes.torch_function_modes import pop, push, set_switch
from dynamo_capture.semantics.registry import handles
from dynamo_capture.values import NONE, Const, Value
from dynamo_capture.values.base import Context
from fx_interface.torch_internals.modes import (
    BLOCKS,
    SWITCHES,
    enter_autocast,
    enter_grad_mode,
    enter_inference_mode,
    exit_grad_mode,
)
from fx_interface.torch_internals.torch_state import (
    set_deterministic,
    set_deterministic_warn_only,
    set_saved_tensors_hooks_refusal,
)

Switches = dict[Callable[..., Any], Any]
"""What switches stand at, by the function that sets them."""


def switches() -> Switches:
    """What all switches stand at now."""
    return {setter: reader() for setter, reader in SWITCHES.items()}


def turn(tx: Context, setter: Callable[..., Any], value: Any) -> None:
    """Set a switch from here on."""
    if set_switch(tx, setter, value):
        return
    known = read(tx, SWITCHES[setter])
    if type(known) is type(value) and known == value:
        return
    tx.fold(lambda: setter(value))
    tx.output.call("call_function", setter, (value,), {}, None, tx.where(), pure=False)


def set_grad(tx: Context, enabled: bool) -> None:
    """Turn gradients on or off from here on."""
    turn(tx, torch._C._set_grad_enabled, enabled)


def _set_switch(setter: Callable[..., Any]) -> Any:
    def handle(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        turn(tx, setter, tx.calls.python_object(args[0]))
        return NONE

    return handle


for _setter in SWITCHES:
    handles(_setter, least=1)(_set_switch(_setter))


@handles(torch._C._autograd._saved_tensors_hooks_disable, least=1)
def refuse_saved_tensors_hooks(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    turn(tx, set_saved_tensors_hooks_refusal, tx.constant(args[0]))
    return NONE


@handles(torch._C._autograd._saved_tensors_hooks_enable)
def allow_saved_tensors_hooks(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    turn(tx, set_saved_tensors_hooks_refusal, None)
    return NONE


@handles(torch.use_deterministic_algorithms)
def use_deterministic_algorithms(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """What is no longer asked for is a switch; it is said again after the graph: torch tells its own compiler too. An
    operator that has no deterministic kernel would have to raise where one is asked for: compiled code cannot tell."""
    asked = {"mode": args[0], **kwargs} if args else kwargs
    if not asked.keys() <= {"mode", "warn_only"} or "mode" not in asked or len(args) > 1:
        raise GraphBreak(TORCH_STATE_CHANGED, "use_deterministic_algorithms() is called with other arguments")
    wanted, only = (tx.truth(asked[name]) if name in asked else False for name in ("mode", "warn_only"))
    if wanted and (not read(tx, SWITCHES[set_deterministic]) or not only):
        raise GraphBreak(TORCH_STATE_CHANGED, "deterministic algorithms are asked for from here on")
    turn(tx, set_deterministic, wanted)
    turn(tx, set_deterministic_warn_only, only)
    tx.effects.deferred(torch.use_deterministic_algorithms, args, kwargs)
    return NONE


class GradMode(ContextValue):
    """``no_grad``, ``enable_grad`` and ``set_grad_enabled``. In a backward only torch's engine knows whether gradients
    are on before: there it is a block for the graph."""

    __slots__ = ("cls", "enabled", "previous")

    def __init__(self, enabled: bool, cls: type) -> None:
        super().__init__()
        self.enabled = enabled
        self.cls = cls
        self.previous: list[tuple[bool, Node | None]] = []

    def python_type(self) -> type:
        return self.cls

    def children(self, tx: Context) -> list[Value]:
        return []

    def enter(self, tx: Context) -> Value:
        before, node = torch.is_grad_enabled(), None
        if tx.output.may_be_recorded:
            node = tx.output.call(
                "call_function", enter_grad_mode, (self.enabled,), {}, None, tx.where(), pure=False
            )
            tx.fold(lambda: torch._C._set_grad_enabled(self.enabled))
        else:
            set_grad(tx, self.enabled)
        self.previous.append((before, node))
        return NONE

    def leave(self, tx: Context, raised: Value) -> Value:
        self.restore(tx, *self.previous.pop())
        return NONE

    def restore(self, tx: Context, before: bool, node: Node | None) -> None:
        """Gradients are on or off as ``before``, where the graph entered it at ``node``."""
        if node is None:
            set_grad(tx, before)
        else:
            tx.output.call("call_function", exit_grad_mode, (node,), {}, None, tx.where(), pure=False)
            tx.fold(lambda: torch._C._set_grad_enabled(before))


@handles(torch.no_grad)
def no_grad(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    manager = GradMode(False, torch.no_grad)
    return manager.call(tx, args, {}) if args else manager


@handles(torch.enable_grad)
def enable_grad(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    manager = GradMode(True, torch.enable_grad)
    return manager.call(tx, args, {}) if args else manager


@handles(torch.set_grad_enabled)
def set_grad_enabled(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    given = args[0] if args else kwargs["mode"]
    if given.python_type() is not bool:
        raise GraphBreak(DESCRIPTOR, f"set_grad_enabled({given.describe()})")
    return SetGradEnabled(tx, tx.truth(given))


class SetGradEnabled(ContextValue):
    """``set_grad_enabled`` takes effect when it is made; leaving the block restores what was before."""

    __slots__ = ("inner",)
    python_class = torch.set_grad_enabled

    def __init__(self, tx: Context, enabled: bool) -> None:
        super().__init__()
        self.inner = GradMode(enabled, torch.set_grad_enabled)
        self.inner.enter(tx)

    def children(self, tx: Context) -> list[Value]:
        return []

    def enter(self, tx: Context) -> Value:
        if torch.is_grad_enabled() is not self.inner.enabled:  # changed since it was made
            self.inner.enter(tx)
        return NONE

    def leave(self, tx: Context, raised: Value) -> Value:
        self.inner.restore(tx, *self.inner.previous[0])
        return NONE

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        self.leave(tx, NONE)
        return GradMode(self.inner.enabled, torch.set_grad_enabled).call(tx, args, {})


class Block(ContextValue):
    """A block that a graph leaves where it ends, and what follows enters again. ``around`` and ``inside``: the switches
    before it was entered and right after."""

    __slots__ = ("around", "entered", "inside")
    starts: Callable[..., Any] | None = None
    """What a graph enters it with, if anything."""

    def __init__(self) -> None:
        super().__init__()
        self.entered: list[tuple[Any, Any]] = []
        self.around: Switches = {}
        self.inside: Switches = {}

    def settings(self) -> tuple[Any, ...]:
        """What ``starts`` is called with, and what makes an equal manager."""
        raise NotImplementedError

    def enter(self, tx: Context) -> Value:
        starts = self.starts
        assert starts is not None
        self.around = switches()
        settings = self.settings()
        with SilentWarnings():  # the graph gives them
            token = tx.fold(lambda: starts(*settings))
        node = tx.output.call("call_function", starts, settings, {}, None, tx.where(), pure=False)
        self.entered.append((token, node))
        self.inside = switches()
        tx.blocks.append(self)
        return NONE

    def undo(self) -> None:
        """Leave it for real, without a node."""
        assert self.starts is not None
        BLOCKS[self.starts](self.entered.pop()[0])

    def end(self, tx: Context) -> None:
        """Leave it for real, and once: who is interrupted here leaves what the trace is still in."""
        times = len(self.entered)
        try:
            self.undo()
        finally:
            if len(self.entered) < times:
                tx.blocks.remove(self)

    def leave(self, tx: Context, raised: Value) -> Value:
        if not self.entered:
            raise GraphBreak(
                NOT_RESUMABLE, f"a block of {self.describe()} is left that was entered elsewhere"
            )
        assert self.starts is not None
        node = self.entered[-1][1]
        self.end(tx)
        tx.output.call("call_function", BLOCKS[self.starts], (node,), {}, None, tx.where(), pure=False)
        return NONE

    def children(self, tx: Context) -> list[Value]:
        return []


class Autocast(Block):
    """``torch.autocast``: device, dtype, enabled, cache_enabled."""

    __slots__ = ("given",)
    python_class = torch.autocast
    starts = staticmethod(enter_autocast)

    def __init__(self, given: tuple[Any, ...]) -> None:
        super().__init__()
        self.given = given

    def settings(self) -> tuple[Any, ...]:
        return self.given


class InferenceMode(Block):
    """``torch.inference_mode``."""

    __slots__ = ("mode",)
    python_class = torch.inference_mode
    starts = staticmethod(enter_inference_mode)

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = mode

    def settings(self) -> tuple[Any, ...]:
        return (self.mode,)

    def get_attr(self, tx: Context, name: str) -> Value:
        return Const(self.mode) if name == "mode" else super().get_attr(tx, name)


class DeviceBlock(Block):
    """``with torch.device(...)``: factory functions get the device as an argument, so that the graph needs no mode."""

    __slots__ = ("device",)
    python_class = torch.device

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device

    def enter(self, tx: Context) -> Value:
        self.around = self.inside = switches()
        self.entered.append((self.device.__enter__(), None))
        tx.blocks.append(self)
        return Const(self.device)

    def undo(self) -> None:
        self.entered.pop()
        self.device.__exit__(None, None, None)

    def leave(self, tx: Context, raised: Value) -> Value:
        self.end(tx)
        return NONE


def device_block(tx: Context, owner: Value, device: torch.device, name: str) -> Value:
    """``device.__enter__()``, which gives the device itself, and ``device.__exit__(...)``.

    Inside of modes it is one of them, and asked first."""
    modes = tx.tensors.modes
    if name == "__enter__" and modes:
        push(tx, [Const(DeviceContext).call(tx, [Const(device)], {})], {})
        return owner
    if name == "__exit__" and modes and modes.active[-1].python_type() is DeviceContext:
        pop(tx, [], {})
        return NONE
    if name == "__enter__":
        DeviceBlock(device).enter(tx)
        return owner
    for block in reversed(tx.blocks):
        if isinstance(block, DeviceBlock):
            if block.device == device:
                return block.leave(tx, NONE)
            break
    raise GraphBreak(NOT_RESUMABLE, "a block of torch.device is left that was entered elsewhere")


def default_device(tx: Context) -> torch.device | None:
    """The device of the innermost ``with torch.device`` of the trace."""
    return next((b.device for b in reversed(tx.blocks) if isinstance(b, DeviceBlock)), None)


def leave_all(tx: Context) -> list[Block]:
    """Leave the blocks that a graph ends in; they are entered again, in this order, by what follows it."""
    entered = list(tx.blocks)
    if len(set(map(id, entered))) < len(entered):
        raise GraphBreak(NOT_RESUMABLE, "inside a block of a context manager that is entered twice")
    for block in reversed(entered):
        block.leave(tx, NONE)
    return entered


@handles(torch.inference_mode)
def inference_mode(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    given = args[0] if args else kwargs.get("mode", Const(True))
    if isinstance(given, Const) and isinstance(given.value, bool):
        return InferenceMode(given.value)
    return InferenceMode(True).call(tx, [given], {})


@handles(torch.autocast)
def autocast(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    names = ("device_type", "dtype", "enabled", "cache_enabled")
    given = [tx.constant(value) for value in args]
    named = {name: tx.constant(value) for name, value in kwargs.items()}
    with SilentWarnings():  # the graph gives them
        tx.fold(lambda: torch.autocast(*given, **named))  # what it refuses, it refuses here
    settings: dict[str, Any] = {"dtype": None, "enabled": True, "cache_enabled": None}
    settings.update(zip(names, given, strict=False))
    settings.update(named)
    return Autocast(tuple(settings[name] for name in names))


def _deprecated_autocast(cls: Any, device: str) -> Any:
    def make(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        settings: dict[str, Any] = {"enabled": True, "dtype": None, "cache_enabled": True}
        settings["dtype"] = torch.bfloat16 if device == "cpu" else torch.float16
        settings.update({name: tx.constant(v) for name, v in zip(list(settings), args, strict=False)})
        settings.update({name: tx.constant(value) for name, value in kwargs.items()})
        warn(tx, [Const(cls.__deprecated__), Const(FutureWarning)], {})
        return Autocast((device, settings["dtype"], settings["enabled"], settings["cache_enabled"]))

    return make


for _cls, _device in ((torch.cpu.amp.autocast, "cpu"), (torch.cuda.amp.autocast, "cuda")):  # type: ignore[attr-defined]
    handles(_cls)(_deprecated_autocast(_cls, _device))


__all__ = ["Autocast", "Block", "DeviceBlock", "GradMode", "InferenceMode", "SetGradEnabled", "set_grad"]
