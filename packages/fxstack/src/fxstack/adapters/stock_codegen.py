"""Stock code generation under our capture: ``fxstack.compile(m, backend="inductor_stock")``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from torch.fx import GraphModule

from fx_interface import INTERFACE_VERSION, CompiledGraph


class StockInductor:
    """Hands the captured graph to stock's AOT autograd and code generator. Sizes are taken as static."""

    interface_version = INTERFACE_VERSION

    def __call__(self, graph_module: GraphModule, example_inputs: Sequence[Any]) -> CompiledGraph:
        """Compile with stock; the result is called as any backend's is."""
        from torch._inductor.compile_fx import compile_fx

        return cast(CompiledGraph, compile_fx(graph_module, list(example_inputs)))


inductor_stock = StockInductor()
