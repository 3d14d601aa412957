"""Our autograd and code generation under stock capture: ``torch.compile(m, backend="fxstack")``.

Stock's capture gives a graph with fake tensors and sympy sizes; here it becomes a graph of our ``torch`` dialect:
specs, a signature and a ``ShapeEnv``. A size that is more than a symbol, an integer or a polynomial of them is not
translated: that graph is then run as captured, with a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from fx_interface import (
    CompiledGraph,
    InputDecl,
    InputKind,
    OutputDecl,
    OutputKind,
    Signature,
    SymSpec,
    TensorSpec,
    UnsupportedProgramError,
    ValueSpec,
)
from fx_interface.signature import DIALECT_KEY, SHAPE_ENV_KEY, SIGNATURE_KEY
from fx_interface.symbols import Expr, IntLike, ShapeEnv
from fx_interface.tensor_spec import SPEC_KEY
from fxstack.backends import inductor
from fxstack.options import Options

logger = logging.getLogger(__name__)


def fxstack_backend(
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> CompiledGraph:
    """The backend that stock's capture calls, with what ``torch.compile(backend="fxstack")`` is given beside it."""
    backend = inductor.configure(Options.make(options, mode)) if mode or options else inductor
    try:
        adopted = _Adoption().adopt(graph_module, example_inputs)
        return backend(adopted, example_inputs)
    except UnsupportedProgramError as error:
        logger.warning("running the graph as captured: %s", error)
        forward: CompiledGraph = graph_module.forward
        return forward


class _Adoption:
    """Translates one graph; owns the symbols met so far."""

    def __init__(self) -> None:
        self.env = ShapeEnv()
        self.symbols: dict[str, Expr] = {}

    def adopt(self, graph_module: GraphModule, example_inputs: Sequence[Any]) -> GraphModule:
        """A graph of our dialect with the same nodes."""
        adopted = GraphModule(graph_module, graph_module.graph)
        placeholders = adopted.graph.find_nodes(op="placeholder")
        inputs: list[InputDecl] = []
        for node, example in zip(placeholders, example_inputs, strict=True):
            spec = self._spec(example)
            node.meta[SPEC_KEY] = spec
            kind = InputKind.SYMBOL if isinstance(spec, SymSpec) else InputKind.USER
            inputs.append(InputDecl(node.name, kind, spec))
        for node in adopted.graph.nodes:
            if node.op not in ("placeholder", "output"):
                node.meta[SPEC_KEY] = self._result_spec(node.meta.get("example_value"))
        results = adopted.graph.output_node().args[0]
        outputs = tuple(OutputDecl(OutputKind.USER) for _ in results)  # type: ignore[union-attr]
        adopted.meta = {
            DIALECT_KEY: "torch",
            SIGNATURE_KEY: Signature(tuple(inputs), outputs),
            SHAPE_ENV_KEY: self.env,
        }
        return adopted

    def _result_spec(self, value: Any) -> ValueSpec:
        if isinstance(value, (tuple, list)):
            return tuple(self._result_spec(item) for item in value)
        return self._spec(value) if isinstance(value, (torch.Tensor, torch.SymInt, int)) else None

    def _spec(self, value: Any) -> TensorSpec | SymSpec:
        if isinstance(value, torch.Tensor):
            return TensorSpec(
                tuple(self._size(n) for n in value.shape),
                tuple(self._size(n) for n in value.stride()),
                value.dtype,
                value.device,
                value.requires_grad,
            )
        if isinstance(value, (int, torch.SymInt)):
            return SymSpec(self._size(value))
        raise UnsupportedProgramError(
            "FXS201", f"a graph input of type {type(value).__name__} under stock capture"
        )

    def _size(self, value: int | torch.SymInt) -> IntLike:
        if isinstance(value, int):
            return value
        return self._polynomial(value.node.expr, value.node.hint)

    def _polynomial(self, expr: Any, hint: int | None) -> IntLike:
        """A sympy polynomial with integer coefficients, in our algebra."""
        if expr.is_Integer:
            return int(expr)
        if expr.is_Symbol:
            if expr.name not in self.symbols:
                self.symbols[expr.name] = self.env.create_symbol(hint)
            return self.symbols[expr.name]
        if expr.is_Add or expr.is_Mul:
            total: IntLike = 0 if expr.is_Add else 1
            for argument in expr.args:
                operand = self._polynomial(argument, None)
                total = total + operand if expr.is_Add else total * operand
            return total
        raise UnsupportedProgramError(
            "FXS202", f"the size {expr} under stock capture", action="compile statically"
        )
