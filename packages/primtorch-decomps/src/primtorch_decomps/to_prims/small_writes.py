"""Small parts of large inputs that a program overwrites stay library calls, which write into the input.

    x[2:5] = v        x' = slice_scatter(x, v, 0, 2, 5, 1)

As a formula it is a pass over all of ``x``: every element is either the old one or a new one. That is what a fused
kernel does well where the part is large, and what eager does not do where it is small: a code generator that finds the
call, and that ``x'`` is the new content of ``x``, writes the part only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch
from torch._ops import OpOverload
from torch.fx import Node

from fx_interface.signature import SIGNATURE_KEY, OutputKind
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import SPEC_KEY, TensorSpec
from primtorch_decomps.rules.data_movement.views import index_from_front
from primtorch_decomps.shapes import canonical_dim, slice_bounds

aten = torch.ops.aten

OPERATORS: Final = frozenset({aten.slice_scatter.default, aten.select_scatter.default})
_SMALL: Final = 4
"""The whole must have so many times the elements of the part."""


def small_write(node: Node, op: OpOverload, args: Sequence[Any], env: ShapeEnv) -> tuple[Any, ...] | None:
    """The arguments of such a call, with places counted from the front; None for all else."""
    if op not in OPERATORS or not _is_new_content(node):
        return None
    x, src, *rest = args
    sizes, part = x.sizes, src.sizes
    if x.device.type != "cpu" or src.dtype is not x.dtype:
        return None
    if not all(isinstance(size, int) for size in (*sizes, *part)):
        return None
    if torch.Size(part).numel() * _SMALL > torch.Size(sizes).numel():
        return None
    axis = canonical_dim(rest[0] if rest else 0, len(sizes))
    if op is aten.select_scatter.default:
        return (x, src, axis, index_from_front(rest[1], sizes[axis], env))
    start, end, step = (*rest[1:], None, None, 1)[:3] if len(rest) < 4 else rest[1:4]
    step = 1 if step is None else step
    low, high, _ = slice_bounds(sizes[axis], start, end, step, env)
    return (x, src, axis, low, high, step)


def _is_new_content(node: Node) -> bool:
    """Whether the node is what an input becomes that nothing else reads."""
    source = node.args[0]
    if not isinstance(source, Node) or source.op != "placeholder" or len(source.users) != 1:
        return False
    graph = node.graph
    signature = graph.owning_module.meta.get(SIGNATURE_KEY) if graph.owning_module is not None else None
    if signature is None or not isinstance(source.meta.get(SPEC_KEY), TensorSpec):
        return False
    inputs = [one for one in graph.nodes if one.op == "placeholder"]
    results: Any = graph.output_node().args[0]
    return any(
        result is node
        and declared.kind is OutputKind.MUTATED_INPUT
        and declared.input_index is not None
        and inputs[declared.input_index] is source
        for result, declared in zip(results, signature.outputs, strict=True)
    )
