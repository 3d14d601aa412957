"""From the store to a callable: nothing of what compiles a graph is needed."""

from __future__ import annotations

from inductor_codegen.cache import ArtifactStore
from inductor_codegen.native.library import load_native_graph
from inductor_codegen.native_errors import ArtifactLoadError
from inductor_codegen.runtime import CompiledGraph


def load_graph(key: str, store: ArtifactStore) -> CompiledGraph | None:
    """The callable that had this ``artifact_key``, perhaps in another process; None if it is no longer there."""
    found = store.get(key)
    if found is None:
        return None
    try:
        if isinstance(found.metadata, dict) and found.metadata.get("kind") == "triton":
            from inductor_codegen.native.gpu import load_triton_graph  # with what writes Triton kernels

            return load_triton_graph(found)
        return load_native_graph(found)
    except ArtifactLoadError:
        store.remove(key)
        return None
