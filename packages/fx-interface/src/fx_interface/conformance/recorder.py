"""Recording a static graph of the ``torch`` dialect while running it on example tensors, which give the specs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from fx_interface.graph_tools.builder import GraphBuilder
from fx_interface.tensor_spec import ObjectSpec, SymFloatSpec, SymSpec, TensorSpec, ValueSpec, spec_of


class Recorder:
    """Builds a graph from calls on real tensors. The given inputs are cloned first, so that they stay as they are."""

    def __init__(self, inputs: Sequence[Tensor]) -> None:
        self._builder = GraphBuilder("torch")
        self._values: dict[Node, Any] = {}
        self._alias_sets: dict[int, int] = {}
        copies = clone_inputs(inputs)
        self.inputs = [self._remember(self._builder.input(self._spec(value)), value) for value in copies]

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Node:
        """Record ``function(*args, **kwargs)``."""
        value = function(*self._real(args), **self._real(kwargs))
        return self._remember(self._builder.call(function, *args, spec=self._spec(value), **kwargs), value)

    def method(self, name: str, *args: Any, **kwargs: Any) -> Node:
        """Record ``args[0].name(*args[1:], **kwargs)``."""
        receiver, *rest = self._real(args)
        value = getattr(receiver, name)(*rest, **self._real(kwargs))
        return self._remember(self._builder.method(name, *args, spec=self._spec(value), **kwargs), value)

    def build(self, results: Sequence[Any]) -> GraphModule:
        """The recorded graph with these results."""
        return self._builder.build(*results)

    def _remember(self, node: Node, value: Any) -> Node:
        self._values[node] = value
        return node

    def _real(self, value: Any) -> Any:
        return map_arg(value, self._values.__getitem__)

    def _spec(self, value: Any) -> ValueSpec:
        match value:
            case Tensor():
                made: TensorSpec = spec_of(value)
                storage = value.untyped_storage()._cdata
                return replace(made, alias=self._alias_sets.setdefault(storage, len(self._alias_sets)))
            case bool() | int():
                return SymSpec(int(value))
            case float():
                return SymFloatSpec(value)
            case tuple():
                return tuple(self._spec(item) for item in value)
            case list():
                return [self._spec(item) for item in value]
        return ObjectSpec(type(value).__name__)


def clone_inputs(inputs: Sequence[Any]) -> list[Any]:
    """Copies with the same sizes, strides, gradients asked for, and shared memory where the originals share it."""
    buffers: dict[int, Tensor] = {}
    return [_clone(value, buffers) if isinstance(value, Tensor) else value for value in inputs]


def _clone(value: Tensor, buffers: dict[int, Tensor]) -> Tensor:
    storage = value.untyped_storage()
    with torch.no_grad():
        if storage._cdata not in buffers:
            flat = torch.empty(0, dtype=value.dtype, device=value.device).set_(storage)
            buffers[storage._cdata] = flat.clone()
        copy = buffers[storage._cdata].as_strided(value.size(), value.stride(), value.storage_offset())
    return copy.detach().requires_grad_(value.requires_grad)
