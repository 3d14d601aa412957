"""Tensors: a graph node, and a tensor without data that knows the metadata."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from fx_interface.source import Source
from torch.fx import Node

from dynamo_capture.graph_breaks import GraphBreak, Raised
from dynamo_capture.metadata import MetaTensor
from dynamo_capture.values.base import Value
from dynamo_capture.values.constants import ConstantValue

if TYPE_CHECKING:
    from dynamo_capture.emission import Emission
    from dynamo_capture.tracer import Tracer

_METADATA = frozenset(
    "shape dtype device layout ndim requires_grad is_leaf is_cuda is_sparse is_quantized is_meta is_cpu is_mps is_xpu "
    "is_nested is_mkldnn is_ipu is_xla is_hpu is_mtia is_maia is_vulkan itemsize nbytes names".split()
)
_VIEWS = frozenset("T mT H mH real imag data".split())


class TensorValue(Value):
    """A tensor in the graph. ``python_class`` is Tensor or Parameter (or another subclass without behaviour)."""

    __slots__ = ("attributes", "meta", "node", "python_class")

    def __init__(
        self, node: Node, meta: MetaTensor, source: Source | None = None, python_class: type = torch.Tensor
    ) -> None:
        self.source = source
        self.node = node
        self.meta = meta
        self.python_class = python_class
        self.attributes: dict[str, Value] = {}

    def python_type(self) -> type:
        return self.python_class

    def describe(self) -> str:
        return f"a tensor ({self.source or self.node.name})"

    def truth(self, tracer: Tracer) -> bool:
        raise GraphBreak("data-dependent", "the truth of a tensor is used in Python")

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name in self.attributes:
            return self.attributes[name]
        if name in _METADATA:
            return tracer.of_metadata(getattr(self.meta, name))
        if name in _VIEWS:
            return tracer.tensor_call(getattr, [self, ConstantValue(name)], {})
        if name == "grad":
            return self._grad(tracer)
        if name == "__class__":
            return tracer.of_python(self.python_class)
        if name in ("is_nested", "_is_hf_initialized"):
            return ConstantValue(False)
        found = getattr(torch.Tensor, name, None)
        if found is None:
            return self._own_attribute(tracer, name)
        if not callable(found):
            raise GraphBreak("attribute", f"attribute {name!r} of a tensor")
        from dynamo_capture.values.functions import TensorMethod

        return TensorMethod(self, name)

    def _grad(self, tracer: Tracer) -> Value:
        if self.source is None or not self.meta.is_leaf:
            return ConstantValue(None)
        real = tracer.real_of.get(self.node)
        if real is not None and real.grad is None:
            from fx_interface.source import AttrSource

            return tracer.wrap(None, AttrSource(self.source, "grad"))
        raise GraphBreak("attribute", "the gradient of an input")

    def _own_attribute(self, tracer: Tracer, name: str) -> Value:
        real = tracer.real_of.get(self.node)
        if real is not None and self.source is not None and name in getattr(real, "__dict__", ()):
            from fx_interface.source import InstanceDictSource, ItemSource

            return tracer.wrap(real.__dict__[name], ItemSource(InstanceDictSource(self.source), name))
        raise Raised(tracer.exception(AttributeError(f"'Tensor' object has no attribute '{name}'")))

    def setattr(self, tracer: Tracer, name: str, value: Value) -> None:
        if name == "requires_grad" or name in _METADATA or name in ("data", "grad"):
            raise GraphBreak("side-effect", f"attribute {name!r} of a tensor is set")
        if self.source is None:
            self.attributes[name] = value
            return
        raise GraphBreak("side-effect", f"attribute {name!r} of an input tensor is set")

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        import operator

        return tracer.tensor_call(operator.getitem, [self, key], {})

    def setitem(self, tracer: Tracer, key: Value, value: Value) -> None:
        import operator

        tracer.tensor_call(operator.setitem, [self, key, value], {})

    def length(self, tracer: Tracer) -> Value:
        if self.meta.dim() == 0:
            raise Raised(tracer.exception(TypeError("len() of a 0-d tensor")))
        return tracer.of_metadata(self.meta.shape[0])

    def contains(self, tracer: Tracer, item: Value) -> Value:
        raise GraphBreak("data-dependent", "a search in a tensor")

    def iterate(self, tracer: Tracer) -> Iterator[Value]:
        if self.meta.dim() == 0:
            raise Raised(tracer.exception(TypeError("iteration over a 0-d tensor")))
        unbound = tracer.tensor_call("unbind", [self, ConstantValue(0)], {})
        return unbound.iterate(tracer)

    def emit(self, emission: Emission) -> None:
        emission.load_graph_output(self)


class SymIntValue(Value):
    """A symbolic integer: a node whose spec is its expression."""

    __slots__ = ("expr", "node")

    def __init__(self, expr: Any, node: Any, source: Source | None = None) -> None:
        self.source = source
        self.expr = expr
        self.node = node

    def python_type(self) -> type:
        return int

    def describe(self) -> str:
        return f"the size {self.expr}"

    def truth(self, tracer: Tracer) -> bool:
        return tracer.decide("!=", self.expr, 0)

    def emit(self, emission: Emission) -> None:
        emission.load_graph_output(self)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name == "__class__":
            return tracer.of_python(int)
        raise GraphBreak("attribute", f"attribute {name!r} of a symbolic size")
