"""Where in its memory a tensor begins: asked of an existing one, worked out for what the graph makes of it."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from dynamo_capture.sources.sources import AnswerSource
from dynamo_capture.values import TensorValue
from dynamo_capture.values.base import Context
from fx_interface.symbols import IntLike, Relation
from fx_interface.tensor_spec import SPEC_KEY, TensorSpec

_STAYS = frozenset(
    {
        "alias", "detach", "view", "view_as", "reshape", "_unsafe_view", "unsqueeze", "squeeze", "t", "transpose",
        "permute", "expand", "expand_as", "flatten", "contiguous", "movedim", "swapaxes",
    }
)  # fmt: skip
"""Views that begin where the tensor begins that they are a view of."""


def storage_offset(tx: Context, owner: TensorValue) -> IntLike | None:
    """The offset that eager's tensor has; None where it is not known.

    What an operation computes begins its memory. A view begins where its operations say: these are asked of a tensor
    without data in the form of the one whose memory it shows. Where sizes vary, only those are known that stay where
    they are, and slices.
    """
    memory = owner.memory
    begin: IntLike = 0
    if memory.real is not None and memory.source is not None:
        source = AnswerSource(memory.source, "storage_offset")
        answer = tx.force(tx.wrap(source.step(memory.real), source))
        begin = answer.expr if answer.expr is not None else tx.integer(answer)
    if memory is owner:
        return begin
    spec = memory.meta.spec
    if not spec.is_static:
        return _moved(tx, owner.node, memory.node, begin)
    sizes: Any = spec.sizes
    strides: Any = spec.strides
    flat = torch.empty(_extent(sizes, strides), dtype=spec.dtype, device="meta")
    with torch.no_grad():
        shown = _shown(owner.node, memory.node, flat.as_strided(sizes, strides))
    return begin + int(shown.storage_offset()) if isinstance(shown, torch.Tensor) else None


def _moved(tx: Context, node: Node, first: Node, begin: IntLike) -> IntLike | None:
    """The offset after the view operations from ``first`` to ``node``."""
    if node is first:
        return begin
    base = node.args[0] if node.args else None
    name = str(getattr(node.target, "__name__", node.target)).partition(".")[0]
    if not isinstance(base, Node):
        return None
    before = _moved(tx, base, first, begin)
    if before is None or name in _STAYS:
        return before
    spec = base.meta.get(SPEC_KEY)
    dim, start = (*node.args[1:3], None, None)[:2]
    if (
        name not in ("select", "narrow", "slice")
        or not isinstance(spec, TensorSpec)
        or not isinstance(dim, int)
    ):
        return None
    size = spec.sizes[dim]
    if start is None:
        return before
    if (
        type(start) is not int
        or start < 0
        or (start and tx.env.known(Relation("<=", start, size)) is not True)
    ):
        return None
    return before + start * spec.strides[dim]


def _extent(sizes: tuple[Any, ...], strides: tuple[Any, ...]) -> int:
    """How many elements lie between the first and the last."""
    if 0 in sizes:
        return 0
    return int(1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)))


def _shown(node: Node, first: Node, memory: torch.Tensor) -> Any:
    """What the view operations from ``first`` to ``node`` make of ``memory``; None where they have other arguments than
    constants and tensors of known form, which is all that a view reads of a second tensor."""
    if node is first:
        return memory
    if node.op not in ("call_function", "call_method") or not node.args:
        return None
    base, *others = node.args
    given = _shown(base, first, memory) if isinstance(base, Node) else None
    second = [other for other in node.all_input_nodes if other is not base or other in others]
    if given is None or any(_form(other) is None for other in second):
        return None
    arguments, named = map_arg((tuple(others), node.kwargs), _form)
    run: Any = getattr(torch.Tensor, str(node.target)) if node.op == "call_method" else node.target
    return run(given, *arguments, **named)


def _form(node: Node) -> torch.Tensor | None:
    """A tensor of the form that a node has, without data; None where it varies."""
    spec = node.meta.get(SPEC_KEY)
    if not isinstance(spec, TensorSpec) or not spec.is_static:
        return None
    sizes: Any = spec.sizes
    return torch.empty(sizes, dtype=spec.dtype, device="meta")
