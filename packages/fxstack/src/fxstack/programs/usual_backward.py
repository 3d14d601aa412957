"""Backwards compiled for the gradients that usually arrive, and kept as text for when others do.

A program with a loss among its results gets a backward without what the gradients of its other results would need
(``aot_autograd.partition.absent_gradients``). The whole graph is kept beside it as compressed text, also in the store,
and compiled in the first call in which one of those gradients arrives.
"""

from __future__ import annotations

import zlib
from dataclasses import replace

from torch.fx import GraphModule

from aot_autograd.partition.absent_gradients import absent_tangents, without_tangents
from aot_autograd.plan import BackwardPlan, JointPlan
from fx_interface import UnsupportedProgramError
from fx_interface.graph import placeholders
from fx_interface.serialization.serialize import from_json, to_json
from fx_interface.symbols import IntLike
from fx_interface.tensor_spec import SPEC_KEY, TensorSpec

_QUICKLY = 1


def usual_backward(plan: JointPlan, backward: GraphModule) -> tuple[JointPlan, GraphModule, bytes | None]:
    """The plan and the backward graph (``aten``) without the gradients that most likely never arrive, and the text of
    the whole graph; None where the plan and the graph are those that were given."""
    absent = absent_tangents(plan)
    if not absent or plan.backward is None or plan.backward.behind:
        return plan, backward, None
    first = len(plan.backward.symbols) + len(plan.backward.saved)
    made = without_tangents(backward, [first + number for number in absent])
    if made is None:
        return plan, backward, None
    try:
        whole = zlib.compress(to_json(backward).encode(), _QUICKLY)
    except UnsupportedProgramError:  # something has no stored form
        return plan, backward, None
    return replace(plan, backward=replace(plan.backward, absent=absent)), made, whole


def kept_text(text: bytes) -> GraphModule:
    """The graph that was kept. CorruptArtifactError for what is no such text."""
    return from_json(zlib.decompress(text))


def kept_layouts(plan: BackwardPlan, backward: GraphModule) -> dict[int, tuple[IntLike, ...]]:
    """Strides of saved values that are others than the graph's specs say, by the numbers of its inputs."""
    nodes, first = placeholders(backward.graph), len(plan.symbols)
    found: dict[int, tuple[IntLike, ...]] = {}
    for number, spec in enumerate(plan.saved_specs, start=first):
        told = nodes[number].meta.get(SPEC_KEY)
        if isinstance(told, TensorSpec) and told.strides != spec.strides:
            found[number] = spec.strides
    return found
