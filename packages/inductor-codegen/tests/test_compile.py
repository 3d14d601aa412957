"""Where compiled graphs are kept that nobody asked to be kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import inductor_codegen.compile
import inductor_codegen.native.gpu
from fx_interface.dialects import prims as p
from inductor_codegen import CodegenOptions, compile_graph
from inductor_codegen.testing import ExampleGraph


def test_kernels_for_a_gpu_outlive_the_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are compiled when they are launched first, out of a file."""
    folders: list[Path] = []

    def build(program: Any, device: Any, store: Any, compiler: Any) -> Any:
        folders.append(Path(store.folder))

    monkeypatch.setattr(inductor_codegen.compile, "_device_of", lambda program: torch.device("cuda", 0))
    monkeypatch.setattr(inductor_codegen.native.gpu, "build_triton_graph", build)
    graph = ExampleGraph()
    module = graph.build(graph.call(p.exp, graph.input(torch.randn(3))))
    compile_graph(module, CodegenOptions(cache=False))
    assert folders[0].is_dir()
