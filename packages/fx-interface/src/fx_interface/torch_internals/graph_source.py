"""The text that torch keeps of each graph's code goes when the code does.

``torch.fx`` writes a function for every ``GraphModule``, and remembers its text, for tracebacks, as long as the process
lives: some kilobytes for each graph.
"""

from __future__ import annotations

import linecache
import weakref
from types import FunctionType

from torch.fx import GraphModule
from torch.fx import graph_module as _torch_graphs

_PREFIX = "<eval_with_key>"


def release_source(graph_module: GraphModule) -> None:
    """From now on the text of this graph, and of those that it calls, lives as long as the code made of it."""
    for part in graph_module.modules():
        forward = type(part).__dict__.get("forward")
        if isinstance(forward, FunctionType) and forward.__code__.co_filename.startswith(_PREFIX):
            weakref.finalize(forward.__code__, _forget, forward.__code__.co_filename).atexit = False


def _forget(name: str) -> None:
    _torch_graphs._loader.eval_cache.pop(name, None)
    linecache.cache.pop(name, None)
