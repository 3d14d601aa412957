"""What a backend written for ``torch.compile`` finds beside its graph: example values and torch's tracing context.

Such a backend reads ``node.meta["example_value"]``, and asks ``torch._guards.TracingContext`` for the fake mode of the
examples. Ours reads specs. Sizes are the numbers of the call that is compiled for, as everywhere where a backend does
not know of symbols (``fxstack.foreign_backends``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._guards import TracingContext, tracing
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx import GraphModule, Node

from fx_interface import SymSpec, TensorSpec, ValueSpec
from fx_interface.signature import SHAPE_ENV_KEY
from fx_interface.symbols import IntLike, Symbol
from fx_interface.symbols.evaluation import evaluate
from fx_interface.tensor_spec import SPEC_KEY, SymFloatSpec

EXAMPLE_KEY = "example_value"


class ExampleContext(TracingContext):
    """The context with the fake mode of the example values. The mode's environment of symbols, whose import takes long,
    is made when a backend asks for the mode; there is no symbol in it until the backend makes one."""

    def __init__(self, mode: FakeTensorMode) -> None:
        self._mode = mode
        super().__init__(mode)

    @property
    def fake_mode(self) -> FakeTensorMode:
        """The mode, complete."""
        if self._mode.shape_env is None:
            from torch.fx.experimental.symbolic_shapes import ShapeEnv as StockShapeEnv

            self._mode.shape_env = StockShapeEnv()
        return self._mode

    @fake_mode.setter
    def fake_mode(self, mode: FakeTensorMode) -> None:
        self._mode = mode


@contextmanager
def as_torch_calls(graph_module: GraphModule, inputs: Sequence[Any]) -> Iterator[None]:
    """Within, a backend that is given ``graph_module`` and ``inputs`` finds what torch's capture would have left."""
    mode = FakeTensorMode(static_shapes=True)
    values = _symbol_values(graph_module, inputs)
    for part in graph_module.modules():
        if isinstance(part, GraphModule):
            for node in part.graph.nodes:
                _give_example(node, mode, values)
    with tracing(ExampleContext(mode)):
        yield


def _symbol_values(graph_module: GraphModule, inputs: Sequence[Any]) -> Mapping[Symbol, int]:
    """Each symbol's number in this call; none for what data tell."""
    env = graph_module.meta.get(SHAPE_ENV_KEY)
    values: dict[Symbol, int] = {}
    if env is None:
        return values
    values.update((atom, info.hint) for atom, info in env.symbols.items() if info.hint is not None)
    placeholders = graph_module.graph.find_nodes(op="placeholder")
    for node, value in zip(placeholders, inputs, strict=False):
        spec = node.meta.get(SPEC_KEY)
        if isinstance(spec, SymSpec) and not isinstance(spec.expr, int):
            atom = spec.expr.as_symbol
            if atom is not None and isinstance(value, int):
                values[atom] = value
    return values


def _give_example(node: Node, mode: FakeTensorMode, values: Mapping[Symbol, int]) -> None:
    spec = node.meta.get(SPEC_KEY)
    if spec is None:
        return
    try:
        node.meta[EXAMPLE_KEY] = _example(spec, mode, values)
    except KeyError:
        node.meta.pop(EXAMPLE_KEY, None)  # a size that data tell: there is no number yet


def _example(spec: ValueSpec, mode: FakeTensorMode, values: Mapping[Symbol, int]) -> Any:
    def number(size: IntLike) -> int:
        return evaluate(size, values)

    match spec:
        case TensorSpec():
            meta = torch.empty_strided(
                [number(size) for size in spec.sizes],
                [number(stride) for stride in spec.strides],
                dtype=spec.dtype,
                device="meta",
            )
            return FakeTensor(mode, meta.requires_grad_(spec.requires_grad), spec.device)
        case SymSpec():
            return number(spec.expr)
        case SymFloatSpec():
            return spec.hint
        case tuple():
            return tuple(_example(part, mode, values) for part in spec)
        case list():
            return [_example(part, mode, values) for part in spec]
    return None
