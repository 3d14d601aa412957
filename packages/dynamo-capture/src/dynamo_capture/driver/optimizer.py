"""``optimize(backend)(fn)``: the function, captured and compiled when it is called."""

from __future__ import annotations

import copy
import functools
import inspect
import logging
import os
import weakref
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, MappingProxyType, MethodType
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch
from torch import nn

from dynamo_capture import _eval_frame
from dynamo_capture.driver.compile_frame import FrameCompiler
from dynamo_capture.driver.compiled_module import compile_module
from dynamo_capture.driver.profiled_ranges import code_of, name_range, shown_function
from dynamo_capture.guard_kinds.guard_filter import GuardFilter
from dynamo_capture.hook import frame_hook
from dynamo_capture.session.controls import when_backend_changes
from dynamo_capture.session.report import RecompileReport, Report
from dynamo_capture.session.session import Session
from dynamo_capture.session.stock_settings import stock_setting
from dynamo_capture.shapes import TrialLibrary
from fx_interface.errors import PluginLoadError
from fx_interface.operators import OperatorLibrary
from fx_interface.plugins import load_operator_library
from fx_interface.source import HandedOn

_log = logging.getLogger("dynamo_capture")

_MEMOS: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()
"""What operations return, by the library that said so; shared by all captures."""
_OPTIMIZERS: weakref.WeakSet[Optimizer] = weakref.WeakSet()
"""Every optimizer that is alive, for ``reset``."""


def _after_fork() -> None:
    for optimizer in list(_OPTIMIZERS):
        optimizer.capture.locks.clear()  # whoever held one is gone


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

_eval_frame.set_rival(torch._C._dynamo.eval_frame.set_eval_frame)


_MOST_VERSIONS = 64
"""So many versions of each code object there are at a time, if nobody says how many."""
_MOST_COMPILATIONS = 256
"""So often each code object is compiled, if most of its versions cannot run any more: what they were for is gone."""


def _stated_limit() -> int | None:
    """How many versions of a code object the program allows stock's compiler, if it says so."""
    limit = stock_setting("recompile_limit", None)
    return limit if isinstance(limit, int) and limit > 0 else None


class Optimizer:
    """What ``optimize(backend)`` returns: a decorator; all that it decorates shares one cache."""

    def __init__(self, session: Session, recompile_limit: int | None, name: str | None = None) -> None:
        self.capture = session
        self._name = name
        most = _MOST_VERSIONS if recompile_limit is None else recompile_limit
        stated = _stated_limit if recompile_limit is None else None
        self._callback = frame_hook.FrameCallback(
            FrameCompiler(session),
            frame_hook.CodeCache(limit=most, total=most, stated=stated, in_all=_MOST_COMPILATIONS),
        )
        _OPTIMIZERS.add(self)

    @property
    def report(self) -> Report:
        """What was met so far."""
        return self.capture.report

    def reset(self) -> None:
        """Forget all that was compiled; the next calls compile again."""
        self._callback.cache.reset()
        self.capture.reset()

    def __call__(self, function: Any) -> Any:
        """``function`` (a function, bound method or any other callable), optimised. Of a module it is one: the module
        for all purposes but being called."""
        return (
            compile_module(function, self._optimize)
            if isinstance(function, nn.Module)
            else self._optimize(function)
        )

    def _optimize(self, function: Any) -> Any:
        if not callable(function):
            raise TypeError(f"{function!r} is no function, module or other callable: nothing to compile")
        target = function if hasattr(function, "__code__") and not _is_torchs(function) else _entry(function)
        self.capture.targets[id(target.__code__)] = target.__code__
        for owner in (0, id(self._callback)):
            _eval_frame.set_skip(target.__code__, 0, owner)
        wrapped = frame_hook.optimize(target, self._callback)
        if target is not function:
            self.capture.handed_on[id(target.__code__)] = _handed_on(function, target.__code__)
        shown = self.capture.shown[id(target.__code__)] = shown_function(function, self._name)
        name_range(wrapped, f"compiled {shown}")
        if target is not function:
            functools.update_wrapper(wrapped, function)  # its own signature, name and text
        if isinstance(function, MethodType):  # its copy belongs to the copy of its object
            wrapped.__deepcopy__ = lambda memo: self(copy.deepcopy(function, memo))  # type: ignore[attr-defined]
        wrapped.__fxstack_original__ = function  # type: ignore[attr-defined]
        wrapped.__fxstack_capture__ = self.capture  # type: ignore[attr-defined]
        wrapped.__fxstack_optimizer__ = self  # type: ignore[attr-defined]  # alive as long, for ``reset``
        return wrapped


def _is_torchs(function: Callable[..., Any]) -> bool:
    """Whether a function is one of torch's: a call of it may mean something that its code does not show, as that of
    ``autograd.Function.apply``."""
    return str(getattr(function, "__module__", "")).partition(".")[0] == "torch"


def _entry(function: Callable[..., Any]) -> FunctionType:
    """A function that calls an object, with code of its own: what is cached is cached per object."""

    self = function  # as reports call it

    def call(*args: Any, **kwargs: Any) -> Any:
        return self(*args, **kwargs)

    name = (
        type(function).__name__
        if isinstance(function, nn.Module)
        else getattr(function, "__qualname__", "call")
    )
    call.__code__ = call.__code__.replace(co_name=name, co_qualname=name)
    call.__name__ = call.__qualname__ = name
    return call  # type: ignore[return-value]


def _handed_on(function: Any, code: CodeType) -> HandedOn:
    """What the arguments are called that an object's entry passes on to it."""
    called = code_of(function)
    if called is None:
        return HandedOn()
    first = 0 if isinstance(function, FunctionType) else 1  # behind the object itself
    behind = called.co_argcount + called.co_kwonlyargcount
    rest = called.co_varnames[behind] if called.co_flags & inspect.CO_VARARGS else None
    taken = frozenset((*code.co_varnames, *code.co_freevars))
    return HandedOn(called.co_varnames[first : called.co_argcount], rest, taken)


def reset() -> None:
    """Forget all that any optimized function compiled."""
    for optimizer in list(_OPTIMIZERS):
        optimizer.reset()


when_backend_changes(reset)


def explain_recompiles(function: Any = None) -> RecompileReport:
    """Which guards made code be compiled again: on what, expected and found values, the user's line, how often.

    ``function`` is what an ``optimize(...)`` returned; without it, of all optimized functions. The logger
    ``dynamo_capture.recompiles`` says the same as it happens.
    """
    if function is not None:
        capture = getattr(function, "__fxstack_capture__", None)
        if capture is None:
            raise TypeError(f"{function!r} is not an optimized function")
        report: Report = capture.report
        return report.explain_recompiles()
    parts = [optimizer.report.explain_recompiles() for optimizer in list(_OPTIMIZERS)]
    entries = sorted((entry for part in parts for entry in part.entries), key=lambda entry: -entry.count)
    return RecompileReport(tuple(entries), tuple(text for part in parts for text in part.exhausted))


@functools.cache
def _default_library() -> OperatorLibrary:
    """The shape rules that are installed; without any, operators are tried out."""
    try:
        return load_operator_library() or TrialLibrary()
    except PluginLoadError as error:
        _log.warning("%s; operators are tried out instead", error)
        return TrialLibrary()


def optimize(
    backend: Callable[..., Any],
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    operators: OperatorLibrary | None = None,
    recompile_limit: int | None = None,
    concurrent: Literal["wait", "eager"] = "wait",
    name: str | None = None,
    guard_filter: GuardFilter | None = None,
    in_python: Mapping[Callable[..., Any], Callable[..., Any]] = MappingProxyType({}),
    weighs_arrays: bool = False,
) -> Optimizer:
    """A decorator that captures the graphs of a function and gives them to ``backend``.

    ``backend(graph_module, example_inputs)`` returns a callable of the graph's inputs. ``fullgraph``: a graph break
    is a CaptureError. ``dynamic``: True makes the sizes of arguments symbolic at once, False never, None those that
    differ between calls. ``operators`` answers for the metadata of operators' results; the default is what is installed
    (primtorch-decomps registers its rules), and without any each new kind of call runs once on zeros, for fixed sizes.
    ``recompile_limit`` versions of each code object are made (None: 64), without those that only fit an object which is
    gone, of which there may be 256; calls that none of them fits run uncompiled from then on, and are a CaptureError
    under ``fullgraph`` if the limit was stated.
    ``concurrent``: what a call does whose function another thread is compiling: wait for it, or run as it is.
    ``name``: what profilers show for the function, in place of its own name. ``guard_filter(entries)`` says of each
    guard (``GuardEntry``) whether it is checked; the program vouches for those that are not. ``in_python``: what Python
    calls in place of a function of torch, where a graph has ended at its call; uncompiled itself. ``weighs_arrays``:
    functions of small arrays of numpy alone run as they are written where a compiled graph would take longer.
    """
    library = _default_library() if operators is None else operators
    memo = _MEMOS.setdefault(library, {})
    session = Session(backend, library, fullgraph, dynamic, memo, waits=concurrent == "wait")
    session.limit_is_stated = recompile_limit is not None
    session.guard_filter = guard_filter
    session.weighs_arrays = session.functions.weighs_arrays = weighs_arrays
    if in_python:
        replaced = {function: frame_hook.disabled(other) for function, other in in_python.items()}
        session.functions.in_python = replaced
    session.alone = _alone
    return Optimizer(session, recompile_limit, name)


def _alone(session: Session) -> Optimizer:
    """What makes one graph of a function by the options of ``session``, or refuses it."""
    made = Session(session.backend, session.library, True, session.dynamic, session.memo, waits=session.waits)
    return Optimizer(made, None)


def explain(function: Callable[..., Any], **settings: Any) -> Callable[..., Report]:
    """``explain(f)(*args)`` runs ``f`` once, its graphs as they are, and returns the report of what was captured."""
    optimizer = optimize(run_graph, **settings)
    compiled = optimizer(function)

    def explained(*args: Any, **kwargs: Any) -> Report:
        optimizer.reset()
        compiled(*args, **kwargs)
        return optimizer.report

    return explained


def run_graph(graph_module: torch.fx.GraphModule, example_inputs: Any) -> Callable[..., Any]:
    """The simplest backend: the captured graph as it is."""
    return graph_module.forward
