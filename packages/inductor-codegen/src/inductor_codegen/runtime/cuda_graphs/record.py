"""Where a compiled graph becomes one that is recorded."""

from __future__ import annotations

from typing import Any

from inductor_codegen.runtime.binding import CompiledGraph
from inductor_codegen.runtime.cuda_graphs.recorded_graph import GraphForm, RecordedGraph, report


def with_cuda_graphs(graph: CompiledGraph, form: GraphForm) -> Any:
    """The graph, recorded as a CUDA graph when it is called again and again, and replayed where nobody can tell but by
    the time that it takes. Itself where it runs on the CPU, or where, as is logged, it cannot be recorded."""
    record = graph.metadata
    if record.gpu is None:
        return graph
    if record.not_recorded:
        report(form.name, record.not_recorded)
        return graph
    from inductor_codegen.runtime.cuda_graphs.cuda import cuda_recorder  # for those with a GPU

    return RecordedGraph(graph, form, cuda_recorder(record.gpu))
