"""An operand that Python might not compute, and that is computed in any case, as nobody can tell.

    if g.isnan().any() or g.isinf().any():      ->      if logical_or(g.isnan().any(), g.isinf().any()):

The operand is tried on a sub-graph first, which is thrown away: it may not raise, draw, write, or change anything, and
it may cost little.
"""

from __future__ import annotations

from collections.abc import Callable

from dynamo_capture.graph.region_body import Body
from dynamo_capture.semantics.regions.steered.trials import is_traced
from dynamo_capture.semantics.regions.steered.written_branches import costs_little
from dynamo_capture.values import Value
from dynamo_capture.values.base import Context


def may_be_computed(tx: Context, run: Callable[[], Value]) -> bool:
    """Whether nobody can tell that ``run`` has computed an operand; what it computes is thrown away."""
    if isinstance(tx.output, Body) or tx.output.is_transformed or tx.tensors.modes or tx.tensors.emptied:
        return False
    body = Body(tx.output, "an operand that data decide about")
    if not is_traced(tx, body, run):
        return False
    if body.draws or body.speaks or body.may_fail or body.lasts or body.leaves or body.bodies or body.mutates:
        return False
    return costs_little(body)
