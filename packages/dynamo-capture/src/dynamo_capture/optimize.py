"""``optimize(backend)(fn)``: the function, captured and compiled when it is called."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from torch import nn

from dynamo_capture import hook
from dynamo_capture.bytecode.resume_code import ResumeCodes
from dynamo_capture.convert import Activation, CaptureOptions, Replacement, convert
from dynamo_capture.graph_breaks import RunEagerly
from dynamo_capture.metadata import RunKernels
from fx_interface.backend import STACK_PACKAGES
from fx_interface.operators import OperatorLibrary
from fx_interface.source import Source

logger = logging.getLogger("dynamo_capture")
_OPTIMIZERS: weakref.WeakSet[Optimizer] = weakref.WeakSet()
"""Every optimizer that is alive, for ``reset``."""

_TORCH = str(Path(torch.__file__).parent)
_OWN = str(Path(__file__).parent)
_STANDARD_LIBRARY = str(Path(logging.__file__).parent.parent)


@dataclass
class Report:
    """What one optimised function has met: replacements by code, and frames left to Python with the reason."""

    replacements: list[tuple[CodeType, Replacement]] = field(default_factory=list)
    eager: list[tuple[CodeType, str]] = field(default_factory=list)


@contextmanager
def _no_cycle_search() -> Iterator[None]:
    """Compiling makes many objects and little garbage; a full collection in a process with torch takes 50-150 ms."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class Capture:
    """The callback of one ``optimize``: turns frames into replacement code, and remembers which sizes vary."""

    def __init__(self, options: CaptureOptions) -> None:
        self.options = options
        self.resumes = ResumeCodes()
        self.report = Report()
        self.targets: dict[int, CodeType] = {}
        """Code that the user asked for, wherever it lives, by identity (equal code may be another function's)."""
        self._seen: dict[int, dict[Source, int]] = {}
        self._varying: dict[int, set[Source]] = {}

    def __call__(self, frame: hook.FrameView, entry_count: int) -> Any:
        """The hook asks about a frame that no cached entry fits."""
        code = frame.code
        if id(code) not in self.targets and (_is_library(code) or _is_of_stack(frame.globals)):
            return hook.SKIP
        activation = Activation(code, frame.globals, frame.closure, dict(frame.locals), frame.function)
        try:
            with _no_cycle_search():
                replacement = convert(activation, self.options, self._dynamic(code), self.resumes)
        except RunEagerly as reason:
            self.report.eager.append((code, str(reason)))
            logger.info("%s runs uncompiled: %s", code.co_qualname, reason)
            return None
        self.report.replacements.append((code, replacement))
        if replacement.stopped is not None:
            logger.info("graph break at %s: %s", replacement.stopped.where, replacement.stopped.what)
        entry = hook.Entry(replacement.code, replacement.evaluator, replacement)
        return entry

    def reset(self) -> None:
        """Forget reports, resume functions and which sizes vary."""
        self.resumes.clear()
        self.report = Report()
        self._seen.clear()
        self._varying.clear()

    def _dynamic(self, code: CodeType) -> Callable[[Source, int], bool]:
        """Whether a size or integer is symbolic: as asked, or because it was another one the last time."""
        seen = self._seen.setdefault(id(code), {})
        varying = self._varying.setdefault(id(code), set())
        dynamic = self.options.dynamic

        def decide(source: Source, value: int) -> bool:
            if dynamic is False:
                return False
            if dynamic is True and not _of_module(source):
                return True
            if seen.setdefault(source, value) != value:
                varying.add(source)
            return source in varying

        return decide


def _of_module(source: Source) -> bool:
    """Sizes and integers that hang on a module's tables are its configuration, not data."""
    text = source.expression
    return "__dict__" in text


def _is_library(code: CodeType) -> bool:
    """Frames of torch, of this package and of the standard library are not worth graphs of their own."""
    filename = code.co_filename
    return filename.startswith((_TORCH, _OWN, "<frozen")) or (
        filename.startswith(_STANDARD_LIBRARY) and "site-packages" not in filename
    )


def _is_of_stack(namespace: Mapping[str, Any]) -> bool:
    """Frames of our own packages run inside compiled graphs (an operator that is called through Python)."""
    return str(namespace.get("__name__")).partition(".")[0] in STACK_PACKAGES


class Optimizer:
    """What ``optimize(backend)`` returns: a decorator; all that it decorates shares one cache."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self._callback = hook.FrameCallback(capture)
        _OPTIMIZERS.add(self)

    def reset(self) -> None:
        """Forget all that was compiled; the next calls compile again."""
        self._callback.cache.reset()
        self.capture.reset()

    def __call__(self, function: Any) -> Any:
        """``function`` (a function, bound method or module), optimised."""
        target = _module_entry(function) if isinstance(function, nn.Module) else function
        code = getattr(target, "__code__", None)
        if code is not None:
            self.capture.targets[id(code)] = code
            hook.unskip(code)
        wrapped = hook.optimize(target, self._callback)
        wrapped.__fxstack_original__ = function  # type: ignore[attr-defined]
        wrapped.__fxstack_capture__ = self.capture  # type: ignore[attr-defined]
        return wrapped


def _module_entry(module: nn.Module) -> Callable[..., Any]:
    """A function that calls the module, with code of its own: what is cached is cached per module."""

    def call_module(*args: Any, **kwargs: Any) -> Any:
        return module(*args, **kwargs)

    call_module.__code__ = call_module.__code__.replace(co_name=type(module).__name__)
    return call_module


def reset() -> None:
    """Forget all that any optimized function compiled."""
    for optimizer in list(_OPTIMIZERS):
        optimizer.reset()


def optimize(
    backend: Callable[..., Any],
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    operators: OperatorLibrary | None = None,
) -> Optimizer:
    """A decorator that captures the graphs of a function and gives them to ``backend``.

    ``backend(graph_module, example_inputs)`` returns a callable of the graph's inputs. ``fullgraph``: a graph break is a
    CaptureError. ``dynamic``: True makes sizes symbolic at once, False never, None those that change between calls.
    ``operators`` answers for the metadata of operators' results; the default runs each new kind of call once on zeros.
    """
    chosen = RunKernels() if operators is None else operators
    return Optimizer(Capture(CaptureOptions(backend, fullgraph, dynamic, chosen)))
