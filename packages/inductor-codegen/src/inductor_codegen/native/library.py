"""The library of a graph for the CPU, in its artifact."""

from __future__ import annotations

from inductor_codegen.cache import Artifact
from inductor_codegen.runtime import CompiledGraph, GraphRecord, load

LIBRARY = "graph.so"
"""The file of a graph's library in its artifact."""


def load_native_graph(artifact: Artifact) -> CompiledGraph:
    """The callable of a stored artifact. ArtifactLoadError IND401 when it cannot be read or loaded."""
    return load(GraphRecord.from_data(artifact.metadata), artifact.files[LIBRARY])
