"""Stock code generation under our capture: ``fxstack.compile(m, backend="inductor_stock")``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from torch.fx import GraphModule

from fx_interface import CompiledGraph
from fxstack.foreign_backends import BySizes


def _compile(graph_module: GraphModule, example_inputs: Sequence[Any]) -> CompiledGraph:
    """Stock's AOT autograd and code generator, which take the sizes of the examples as static."""
    from torch._inductor.compile_fx import compile_fx

    return cast(CompiledGraph, compile_fx(graph_module, list(example_inputs)))


inductor_stock = BySizes(_compile)
