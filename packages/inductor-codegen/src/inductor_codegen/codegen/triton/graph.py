"""A program for a GPU as a callable: its generated module in the artifact store, and the state that it runs under."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from inductor_codegen.cache import Artifact, ArtifactStore, content_key
from inductor_codegen.codegen.triton.module import load_call
from inductor_codegen.codegen.triton.wrapper import program_source
from inductor_codegen.ir.program import Program

_MODULE = "graph.py"


class TritonGraph:
    """Called with the graph's inputs positionally, it returns a tuple of its outputs, unknown to autograd."""

    __slots__ = ("_call", "_device", "artifact_key")

    def __init__(self, key: str, device: int, call: Callable[..., tuple[Any, ...]]) -> None:
        self.artifact_key = key
        self._device = device
        self._call = call

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """The outputs for these inputs, on the current stream of the graph's device."""
        with torch._C._AutoDispatchBelowAutograd(), torch._C._DisableAutocast():
            if self._device == torch.cuda.current_device():
                return self._call(*inputs)
            with torch.cuda.device(self._device):
                return self._call(*inputs)


def build_triton_graph(program: Program, device: int, store: ArtifactStore) -> TritonGraph:
    """The callable for a program whose kernels run on the CUDA device ``device``. ImportError without Triton."""
    text = program_source(program)
    key = content_key("triton", torch.__version__, importlib.metadata.version("triton"), str(device), text)

    def create(folder: Path) -> tuple[Any, Mapping[str, bytes | Path]]:
        return {"kind": "triton", "key": key, "device": device}, {_MODULE: text.encode()}

    return load_triton_graph(store.get_or_create(key, create))


def load_triton_graph(artifact: Artifact) -> TritonGraph:
    """The callable of a stored module."""
    metadata = artifact.metadata
    return TritonGraph(metadata["key"], metadata["device"], load_call(artifact.files[_MODULE]))
