"""Results of torch operations: described once, and made into values for each call."""

from __future__ import annotations

import operator
from typing import Any

import torch

from dynamo_capture.semantics.tensors.results.given_views import maker_of, pass_on
from dynamo_capture.semantics.tensors.results.outcome import ArgumentRef, NewTensor, ResultSequence
from dynamo_capture.shapes import SpecTensor
from dynamo_capture.values import ListValue, SymValue, TensorMeta, TensorValue, TupleValue, Value
from dynamo_capture.values.base import Context
from fx_interface.symbols import Expr
from fx_interface.tensor_spec import TensorSpec, with_grad

_creation = torch._C._autograd._get_creation_meta
_FOLLOWED = torch._C._autograd.CreationMeta.DEFAULT
"""How a view was made whose writes autograd follows: by a function of one result, with gradients on."""


class Results:
    """From what an operation returned to values."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx

    def describe_result(self, result: Any, fakes: list[SpecTensor], found: list[bool]) -> Any:
        if isinstance(result, SpecTensor):
            found[0] = True
            for index, fake in enumerate(fakes):
                if result is fake:
                    return ArgumentRef(index)
            view_of, refuses_writes, maker = None, False, None
            if result._is_view():
                refuses_writes = _creation(result) != _FOLLOWED
                maker = None if refuses_writes else maker_of(result)
                base = result._base
                view_of = next(
                    (i for i, f in enumerate(fakes) if f is base or (f._is_view() and f._base is base)), None
                )
            owner = self._tx.inference.owner(result)
            memory_of = next((i for i, fake in enumerate(fakes) if fake is owner), None)
            meta = TensorMeta.of(
                result.spec, result.requires_grad, result.is_leaf, is_inference=result.is_inference()
            )
            return NewTensor(meta, view_of, memory_of, refuses_writes, maker)
        if isinstance(result, torch.Tensor):
            found[0] = True
            spec = TensorSpec(tuple(result.shape), tuple(result.stride()), result.dtype, result.device)
            return NewTensor(TensorMeta.of(spec, result.requires_grad, result.is_leaf, type(result)), None)
        if isinstance(result, torch.SymInt):
            value = self._tx.env.simplify(result.node.value)
            return value
        if isinstance(result, torch.SymBool):
            return bool(result)
        if isinstance(result, torch.SymFloat):
            return float(result)
        if isinstance(result, (tuple, list)):
            return ResultSequence(type(result), [self.describe_result(item, fakes, found) for item in result])
        return result

    def constant_result(self, described: Any) -> Value:
        if isinstance(described, ResultSequence):
            items = [self.constant_result(item) for item in described.items]
            if described.cls is list:
                return ListValue(items)
            return TupleValue(items, described.cls)
        if isinstance(described, Expr):
            return SymValue(described)
        return self._tx.known(described)

    def spec_tree(self, described: Any, tensors: list[TensorValue]) -> Any:
        if type(described) is NewTensor:
            return with_grad(described.meta.spec, described.meta.requires_grad)
        if type(described) is ArgumentRef:
            meta = tensors[described.index].meta
            return with_grad(meta.spec, meta.requires_grad)
        if type(described) is ResultSequence:
            parts = [self.spec_tree(item, tensors) for item in described.items]
            return parts if described.cls is list else tuple(parts)
        return None

    def result_of(self, node: Any, described: Any, tensors: list[TensorValue]) -> Value:
        if type(described) is NewTensor:
            made = TensorValue(node, described.meta)
            if described.view_of is not None:
                seen = tensors[described.view_of]
                made.root = seen.root
                made.root.views.append(made)
                made.refuses_writes = described.refuses_writes or seen.refuses_writes
                pass_on(made, seen, described.maker)
            if described.memory_of is not None:
                made.show(tensors[described.memory_of].memory)
            return made
        if type(described) is ArgumentRef:
            return tensors[described.index]
        if type(described) is ResultSequence:
            items: list[Value] = []
            for index, part in enumerate(described.items):
                if type(part) is NewTensor or type(part) is ResultSequence:
                    item = self._tx.output.call(
                        "call_function",
                        operator.getitem,
                        (node, index),
                        {},
                        self.spec_tree(part, tensors),
                        self._tx.where(),
                        pure=True,
                    )
                    items.append(self.result_of(item, part, tensors))
                else:
                    items.append(self.result_of(node, part, tensors))
            return ListValue(items) if described.cls is list else TupleValue(items, described.cls)
        return self.constant_result(described)
