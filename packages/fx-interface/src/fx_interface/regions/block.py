"""The plain call of a sub-graph: ``call_block(body, *args)``, for blocks that occur many times."""

from __future__ import annotations

from fx_interface.dialects.dialect import broken
from fx_interface.graph import call_block
from fx_interface.regions.region import RegionCall, region, results_of


def _check(call: RegionCall) -> None:
    (body,) = call.bodies
    if call.node.kwargs:
        broken("FXI113", call.node, "a call of a block takes positional arguments only")
    call.takes(body, call.arguments)
    call.gives(results_of(body))


region("call", parts=("block",), check=_check, dialects=("torch", "aten", "prims"))(call_block)
