"""The text of a graph's code: written when somebody asks for it, and gone when the code is.

``torch.fx`` writes a function for every ``GraphModule`` when it is made, which takes as long as tracing a layer, and
remembers its text, for tracebacks, as long as the process lives: some kilobytes for each graph. A captured graph that
is compiled runs that function where the compiled one cannot, which is hardly ever.
"""

from __future__ import annotations

import linecache
import math
import operator
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch
from torch.fx import GraphModule
from torch.fx import graph_module as _torch_graphs

_PREFIX = "<eval_with_key>"
_SET_BY_WRITING = frozenset({"_code", "_lineno_map", "_prologue_start"})
"""Attributes that ``recompile`` sets, which methods of ``torch.fx`` read."""


class UnwrittenGraph(GraphModule):
    """A ``GraphModule`` whose function is written when ``forward`` or ``code`` is first read, or ``recompile`` called.
    Its text goes with it."""

    def recompile(self) -> Any:
        """Write the function for the graph as it is now. (The first call is the constructor's.)"""
        cls = type(self)
        if "forward" not in vars(cls):
            cls.forward = _Unwritten(self)  # type: ignore[assignment]
            return None
        written = super().recompile()
        release_source(self)
        return written

    @property
    def code(self) -> str:
        """The text of the function."""
        _ = self.forward
        return str(super().code)

    def __getattr__(self, name: str) -> Any:
        if name in _SET_BY_WRITING and isinstance(vars(type(self)).get("forward"), _Unwritten):
            _ = self.forward
            return self.__dict__[name]
        return super().__getattr__(name)

    def __reduce__(self) -> Any:
        _ = self.forward  # what is pickled has the text
        return super().__reduce__()

    def __reduce_package__(self, exporter: Any) -> Any:
        _ = self.forward
        return super().__reduce_package__(exporter)


class _Unwritten:
    """``forward`` of a graph until it is read. (Each graph has a class of its own.)"""

    __slots__ = ("graph",)

    def __init__(self, graph: UnwrittenGraph) -> None:
        self.graph = weakref.ref(graph)

    def __get__(self, instance: object, owner: type) -> Any:
        graph = self.graph()
        if graph is None:
            raise AttributeError("forward")
        graph.recompile()
        return vars(owner)["forward"].__get__(instance, owner)


def forward_of(graph_module: GraphModule) -> Callable[..., Any]:
    """What runs the graph as it is written; an unwritten one is written when that is first called."""
    if not isinstance(graph_module, UnwrittenGraph):
        run: Callable[..., Any] = graph_module.forward
        return run

    def forward(*inputs: Any) -> Any:
        return graph_module.forward(*inputs)

    return forward


def target_in_text(target: Any, args: tuple[Any, ...]) -> Any:
    """The target of a node whose text computes what ``target`` does: a graph's code has operators between the texts of
    their operands, where ``-2.0 ** x`` would be the negative of a power."""
    is_power = target is operator.pow and isinstance(args[0], (int, float))
    return torch.pow if is_power and math.copysign(1.0, args[0]) < 0 else target


def release_source(graph_module: GraphModule) -> None:
    """From now on the text of this graph, and of those that it calls, lives as long as the code made of it."""
    for part in graph_module.modules():
        forward = type(part).__dict__.get("forward")
        if isinstance(forward, FunctionType) and forward.__code__.co_filename.startswith(_PREFIX):
            weakref.finalize(forward.__code__, _forget, forward.__code__.co_filename).atexit = False


def _forget(name: str) -> None:
    _torch_graphs._loader.eval_cache.pop(name, None)
    linecache.cache.pop(name, None)
