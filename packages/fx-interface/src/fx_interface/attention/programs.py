"""Programs: a sub-graph of one point's numbers as text, so that an operator can be given it.

A program is a graph (of the dialect that the graph around it has) in the stored form of ``serialization``. Its inputs
are the point's numbers, then operands; its results have no dimensions. ``ScoreProgram`` and the like say which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch.fx import GraphModule

from fx_interface.graph import spec_of_node
from fx_interface.serialization.serialize import from_json, to_json
from fx_interface.tensor_spec import TensorSpec


@lru_cache(maxsize=256)
def program_of(text: str) -> GraphModule:
    """The graph of a program; nobody may change it."""
    return from_json(text)


def text_of(graph_module: GraphModule) -> str:
    """The program as text."""
    return to_json(graph_module)


def run_program(text: str, *args: Any) -> tuple[torch.Tensor, ...]:
    """A program's results; points may be given as tensors that are broadcast against each other."""
    run: Callable[..., Sequence[torch.Tensor]] = program_of(text).forward
    return tuple(run(*args))


def is_pointwise(graph_module: GraphModule) -> bool:
    """Whether all that a graph computes has no dimensions, so that it may be called with broadcast points."""
    made = [node for node in graph_module.graph.nodes if node.op not in ("placeholder", "output")]
    kept = all(node.op == "call_function" for node in made)
    specs = [spec_of_node(node) for node in made]
    return kept and all(isinstance(spec, TensorSpec) and not spec.sizes for spec in specs)
