"""Which results count their writes together: ``x.data`` and the views of it have a version of their own.

d = x.data;  return x, d, d[0]      ->      x;  d, a view of x that counts apart (1);  d[0], a view of the same d
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from aot_autograd.plan import Recipe, Replay, ViewOf
from aot_autograd.recording.trace import TracedTensor

_count_write: Any = torch._C._increment_version
_set_versions = torch._C._autograd._unsafe_set_version_counter


def counts_apart(view: TracedTensor, of: TracedTensor | None) -> bool:
    """Whether writes to the view, which has no history, are not those of the tensor that it is made again ``of`` (None:
    the base of its memory), for autograd: it is ``x.data``, or a view of that."""
    base = view.storage_record.base if of is None else of
    if view.requires_grad or view.is_inference() or base.is_inference():
        return False
    before = base._version, view._version
    _count_write((view,))
    is_apart = base._version == before[0]
    _set_versions((view,), (before[1],))
    return is_apart


def counting_apart(
    recipe: ViewOf, view: TracedTensor, outputs: Sequence[Any], recipes: Sequence[Recipe]
) -> ViewOf:
    """The recipe of a view that has a counter of its own, or the one of an earlier result. Its base is detached."""
    others = [
        (output, other)
        for output, other in zip(outputs, recipes, strict=False)
        if isinstance(other, ViewOf) and other.counts_apart
    ]
    number = 1 + max((other.counts_apart for _, other in others), default=0)
    for output, other in others:
        if other.base == recipe.base and not counts_apart(view, output):
            number = other.counts_apart
    detached = Replay("aten::detach.default", (), (), None, False)
    steps = tuple(itertools.dropwhile(lambda step: step.op == detached.op, recipe.steps))
    recipe = replace(recipe, counts_apart=number, steps=steps)
    return recipe if recipe not in recipes else replace(recipe, steps=(*steps, detached))
