"""A branch that is skipped where there are no rows, and that autograd follows: the graph states that there are some.

    if mask.any():                          # the graph goes on inside, and checks that mask.nonzero() has rows
        out[mask] += expert(x[mask])

What has not been done has no gradient, so that the branch cannot be done for no rows. Where the check fails, the frame
runs once more as it is. Where that happens often, it is captured again and the graph ends there.
"""

from __future__ import annotations

import math
from typing import Final

import torch

from dynamo_capture.graph.region_body import Body
from dynamo_capture.semantics.regions.steered.empty_branches import Skippable
from dynamo_capture.semantics.tensors.content.data_numbers import assume
from dynamo_capture.values import TensorValue, one_tensor
from dynamo_capture.values.base import Context
from fx_interface.errors import UserLocation
from fx_interface.symbols import Relation, Symbol, symbol

_ELEMENTS_FOR_ONE: Final = 16
"""Elements of a mask for each branch at one line: with fewer, one of them has no rows too often."""


def assumes_rows(tx: Context, branch: Skippable, rounds: int) -> bool:
    """State that there are rows in the branch that is traced next, one of ``rounds`` at its line in this frame. False:
    nothing speaks for it, or the graph cannot state it."""
    place = tx.where()
    if not torch.is_grad_enabled() or place in _refused(tx) or isinstance(tx.output, Body):
        return False
    mask = branch.mask
    elements = _most(tx, branch.rows) if mask is None else _elements(tx, mask)
    if elements < _ELEMENTS_FOR_ONE * rounds or tx.output.lasts or tx.output.is_watched():
        return False
    rows = branch.rows
    if mask is not None:
        places = one_tensor(mask.call_method(tx, "nonzero", [], {}))
        found = places.meta.spec.sizes[0]
        atom = None if isinstance(found, int) else found.as_symbol
        if atom is None:
            return False
        rows = atom
    assume(tx, Relation("<=", 1, symbol(rows.name)))
    tx.tensors.state.assuming.append(place)
    return True


def _refused(tx: Context) -> set[UserLocation | None]:
    refused: set[UserLocation | None] = tx.policy.functions.not_assumed
    return refused


def _most(tx: Context, rows: Symbol) -> float:
    """How many rows there may be; where that is open, enough."""
    most = tx.env.bounds(symbol(rows.name)).high
    return math.inf if most is None else most


def _elements(tx: Context, mask: TensorValue) -> int:
    found = 1
    for size in mask.meta.spec.sizes:
        if tx.env.is_from_data(size):
            return 0
        found *= tx.env.hint(size)
    return found
