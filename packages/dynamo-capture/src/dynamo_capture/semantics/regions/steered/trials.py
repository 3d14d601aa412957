"""Code that data may leave out, tried on a sub-graph that is thrown away: nobody must be able to tell that it ran."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.fx import Node

from dynamo_capture.foundation.errors import GraphBreak, NotConstant, UserRaise, forget_frames
from dynamo_capture.graph.graph_builder import GraphOutput
from dynamo_capture.graph.region_body import Body
from dynamo_capture.semantics.random_numbers.drawing import outside_only
from dynamo_capture.semantics.regions.tracing import trace_body
from dynamo_capture.values import NONE, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES
from fx_interface.errors import UnbackedSymbolError
from fx_interface.tensor_spec import SPEC_KEY, TensorSpec


class Trial(Body):
    """The sub-graph of a branch. ``failing``: its operations that may fail."""

    def __init__(self, parent: GraphOutput) -> None:
        super().__init__(parent, "a branch that data steer")
        self.failing: list[Node] = []

    def fail(self, node: Node, *, behind: bool) -> None:
        super().fail(node, behind=behind)
        self.failing.append(node)


def may_try(tx: Context) -> bool:
    """Whether nothing of the program sees, or transforms, what is computed here."""
    return not (tx.output.is_transformed or tx.tensors.modes or tx.blocks or tx.tensors.emptied)


def is_traced(tx: Context, body: Body, run: Callable[[], Value | None]) -> bool:
    """Trace what ``run`` does into the sub-graph; False where it cannot be in one. How many elements of masks are set
    is known by numbers of the sub-graph until the caller has taken back ``tx.inference.counts``."""

    def tried() -> Value:
        made = run()
        return NONE if made is None else made

    try:
        outside_only(tx, lambda: trace_body(tx, body, tried, pure=True), body.what)
    except (GraphBreak, NotConstant, UnbackedSymbolError, UserRaise) as error:
        forget_frames(error)  # which hold what the program has in its variables
        return False
    return True


def is_noticed(body: Body, written: Iterable[Any]) -> bool:
    """Whether somebody can tell that a sub-graph has run that writes to these tensors of its surroundings, whatever it
    writes: by random numbers, effects and checks, by versions of tensors that existed before, or by gradients (what has
    not been done has none, and not one of zeros)."""
    if body.draws or body.speaks or body.assumes or body.lasts or body.leaves or body.bodies or body.checks:
        return True
    for root in written:
        if root.node.op == "placeholder" or root.real is not None or root.meta.cls not in PLAIN_CLASSES:
            return True
    return torch.is_grad_enabled() and any(_requires_grad(n) for n in (*body.lifted, *body.graph.nodes))


def _requires_grad(node: Node) -> bool:
    spec = node.meta.get(SPEC_KEY)
    return isinstance(spec, TensorSpec) and spec.requires_grad
