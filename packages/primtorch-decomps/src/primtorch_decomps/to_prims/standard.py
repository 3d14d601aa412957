"""The operator library with the rules and decompositions of this package, and the pass to primitives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch._ops import OpOverload
from torch.fx import GraphModule

from primtorch_decomps import to_prims
from primtorch_decomps.registry import DECOMPOSITIONS, RULES
from primtorch_decomps.spec_inference.library import Library

LIBRARY = Library(DECOMPOSITIONS, RULES)
"""The ``fx_interface.operators.OperatorLibrary`` of this package."""


def decompose(graph_module: GraphModule, table: Mapping[OpOverload, Any] = DECOMPOSITIONS) -> GraphModule:
    """``graph_module`` (dialect ``aten``) in dialect ``prims``; see ``primtorch_decomps.to_prims.decompose``."""
    return to_prims.decompose_with(graph_module, table, LIBRARY)
