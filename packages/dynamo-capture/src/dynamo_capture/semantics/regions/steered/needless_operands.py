"""An operand that Python might not compute, and that is computed in any case, as nobody can tell.

    if g.isnan().any() or g.isinf().any():      ->      if logical_or(g.isnan().any(), g.isinf().any()):

The operand is tried on a sub-graph first, which is thrown away: it may not raise, draw, write, or change anything, and
it may cost little.
"""

from __future__ import annotations

from collections.abc import Callable

from dynamo_capture.foundation.errors import GraphBreak, NotConstant, UserRaise
from dynamo_capture.graph.region_body import Body
from dynamo_capture.semantics.random_numbers.drawing import outside_only
from dynamo_capture.semantics.regions.steered.written_branches import costs_little
from dynamo_capture.semantics.regions.tracing import trace_body
from dynamo_capture.values import Value
from dynamo_capture.values.base import Context
from fx_interface.errors import UnbackedSymbolError


def may_be_computed(tx: Context, run: Callable[[], Value]) -> bool:
    """Whether nobody can tell that ``run`` has computed an operand; what it computes is thrown away."""
    if isinstance(tx.output, Body) or tx.output.is_transformed or tx.tensors.modes or tx.tensors.emptied:
        return False
    body = Body(tx.output, "an operand that data decide about")
    try:
        outside_only(tx, lambda: trace_body(tx, body, run, pure=True), body.what)
    except (GraphBreak, NotConstant, UnbackedSymbolError, UserRaise):
        return False
    if body.draws or body.speaks or body.may_fail or body.lasts or body.leaves or body.bodies or body.mutates:
        return False
    return costs_little(body)
