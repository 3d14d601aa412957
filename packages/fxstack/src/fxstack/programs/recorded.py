"""A program's graphs as CUDA graphs: what its plan tells of their inputs and results."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch.fx import GraphModule

from aot_autograd.plan import BackwardPlan, JointPlan, SavedInput, SavedOutput
from fx_interface.graph import location_of_node
from inductor_codegen.runtime.cuda_graphs.record import with_cuda_graphs
from inductor_codegen.runtime.cuda_graphs.recorded_graph import GraphForm


def recorded(
    plan: JointPlan,
    forward: Any,
    backward: Any | None,
    program: GraphModule,
    *,
    beside_threads: bool,
) -> tuple[Any, Any | None]:
    """The compiled graphs of a program, recorded and replayed where that can be done; ``beside_threads``: while there
    are other threads, too."""
    fixed = frozenset((*plan.owned, *range(plan.inputs, plan.inputs + len(plan.constants))))
    visible = plan.returned + len(plan.mutated)
    saved = () if plan.backward is None else plan.backward.saved
    kept = frozenset(s.index for s in saved if isinstance(s, SavedOutput) and s.index >= visible)
    read = {s.index for s in saved if isinstance(s, SavedOutput)}
    writes = tuple(
        (m.graph_index, m.input_index)
        for m in plan.mutated
        if m.graph_index >= plan.returned and m.graph_index not in read
    )
    where = next(filter(None, map(location_of_node, program.graph.nodes)), None)
    of = "" if where is None else f" of the graph that begins at {where}"
    forward = with_cuda_graphs(
        forward,
        GraphForm(
            fixed=fixed, kept=kept, writes=writes, beside_threads=beside_threads, name=f"the forward{of}"
        ),
    )
    if backward is not None and plan.backward is not None:
        form = _of_backward(plan.backward, fixed, visible)
        backward = with_cuda_graphs(
            backward, replace(form, beside_threads=beside_threads, name=f"the backward{of}")
        )
    return forward, backward


def _of_backward(backward: BackwardPlan, fixed: frozenset[int], visible: int) -> GraphForm:
    placed = list(enumerate(backward.saved, start=len(backward.symbols)))
    return GraphForm(
        fixed=frozenset(n for n, s in placed if isinstance(s, SavedInput) and s.index in fixed),
        of_forward=frozenset(n for n, s in placed if isinstance(s, SavedOutput) and s.index >= visible),
    )
