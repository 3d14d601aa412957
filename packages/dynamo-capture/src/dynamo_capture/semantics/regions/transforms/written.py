"""Arguments of ``vmap`` that its function writes to, or gives back as they are.

    torch.vmap(torch.Tensor.acos_)(x)     # x is written to, and is the result

A region reads its arguments. So the function works on a copy of what it writes to, whose content at the end is one more
result of the region, and is written to the argument behind it.
"""

from __future__ import annotations

from torch.fx import Node

from dynamo_capture.foundation.break_kinds import REGION_EFFECT, TRANSFORM
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.regions.transforms.body import TransformBody
from dynamo_capture.values import Const, TensorValue, Value
from dynamo_capture.values.base import Context


class Arguments:
    """The tensors ``over`` which a function is mapped, by ``dims``, and what its ``body`` does with their slices."""

    def __init__(self, body: TransformBody, over: list[TensorValue], dims: list[int]) -> None:
        self._body = body
        self._over = over
        self._dims = dims
        self._written: list[int] = []

    def is_one(self, result: TensorValue) -> bool:
        """Whether a result is a slice of an argument itself."""
        return result.node in self._body.parameters

    def outside(self, tx: Context, result: TensorValue, dim: int | None) -> Value:
        """A result that is a slice of an argument, with all slices along ``dim``: the argument, or a view of it."""
        index = self._body.parameters.index(result.node)
        if dim is None:
            raise GraphBreak(TRANSFORM, f"{self._body.what} gives back a slice as the same for all")
        leaf = self._over[index]
        dim %= len(leaf.meta.spec.sizes)
        if dim == self._dims[index]:
            return leaf
        return leaf.call_method(tx, "movedim", [Const(self._dims[index]), Const(dim)], {})

    def written(self, results: list[TensorValue]) -> list[TensorValue]:
        """The contents at the end of the slices that are written to, which are copies from now on."""
        body = self._body
        contents = []
        for index, parameter in enumerate(body.parameters):
            writes = sum(tensor.node is parameter for tensor in body.overwritten)
            if not writes:
                continue
            self._check(index, parameter, writes, results)
            self._written.append(index)
            contents.append(TensorValue(body.copied(parameter), self._over[index].meta))
        return contents

    def _check(self, index: int, parameter: Node, writes: int, results: list[TensorValue]) -> None:
        leaf, what = self._over[index], self._body.what
        if writes > 1:  # versions are counted
            raise GraphBreak(REGION_EFFECT, f"{what} writes to an argument more than once")
        if self._dims[index] != 0 or not leaf.meta.spec.is_contiguous:
            raise GraphBreak(REGION_EFFECT, f"{what} writes to an argument that is not row-major")
        others = [other for other in self._over if other is not leaf]
        if len(others) < len(self._over) - 1 or any(
            other.memory.node is leaf.memory.node for other in others
        ):
            raise GraphBreak(REGION_EFFECT, f"{what} writes to an argument that it gets twice")
        if any(_leads_to(lifted, leaf.memory.node) for lifted in self._body.lifted):
            raise GraphBreak(REGION_EFFECT, f"{what} writes to an argument that it reads from elsewhere, too")
        if any(value.memory.node is parameter and value.node is not parameter for value in results):
            raise GraphBreak(REGION_EFFECT, f"{what} gives back a view of what it has written to")

    def write(self, tx: Context, contents: list[Value]) -> None:
        """Write the contents, results of the region, to the arguments."""
        for index, content in zip(self._written, contents, strict=True):
            self._over[index].call_method(tx, "copy_", [content], {})


def _leads_to(node: Node, memory: Node) -> bool:
    """Whether a tensor may show the memory of another: it is that, or is computed from it."""
    pending, seen = [node], set()
    while pending:
        one = pending.pop()
        if one is memory:
            return True
        if one not in seen:
            seen.add(one)
            pending.extend(one.all_input_nodes)
    return False
