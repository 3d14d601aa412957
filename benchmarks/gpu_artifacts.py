"""What compiling an artifact for a GPU takes: ``python -m benchmarks.gpu_artifacts [--training] [name[:dims] ...]``.

No GPU is needed: a model is captured on the CPU, its graphs are said to lie on a GPU, and kernels are compiled for one
architecture. ``dims``: the dimensions of each input that vary, of any size (``bert:01`` is any batch and length).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule

import fxstack
from benchmarks.models import WORKLOADS
from inductor_codegen.native import kernel_images
from inductor_codegen.native.gpu_ahead_of_time import compile_for_gpus
from inductor_codegen.options import CodegenOptions
from inductor_codegen.testing import on_gpu_alike

ARCHITECTURE = "sm_90"


def reductions(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Each kind of reduction of a matrix, and its transpose."""
    return x.sum(), x.sum(0), x.sum(1), x.amax(1) - x.amin(1), (x.T + 1).contiguous(), x.argmax(1)


def measure(name: str, training: bool) -> None:
    """Print forms, seconds and bytes of a model's graphs."""
    model_name, _, dims = name.partition(":")
    model: Callable[..., Any] = reductions
    inputs: dict[str, Any] = {"x": torch.ones(6, 10)}
    if model_name != "reductions":
        model, inputs = WORKLOADS[model_name].build(training=training)
    inputs.pop("labels", None)  # with which some models set a field of their configuration
    shapes = {
        key: {int(d): f"size{d}" for d in dims if int(d) < value.dim()} for key, value in inputs.items()
    }
    graphs = fxstack.export(model, (), inputs, dynamic_shapes=shapes, training=training).graphs
    for part, graph in (("forward", graphs.forward), ("backward", graphs.backward)):
        if graph is not None:
            forms, seconds, size = compiled(graph)
            print(f"{name} {part}: {forms} forms, {seconds:.1f} s, {size / 1e6:.1f} MB", flush=True)


def compiled(graph: GraphModule) -> tuple[int, float, int]:
    """How many kernels were compiled, in which time, and the size of the native object."""
    images: Any = kernel_images
    compile_kernel, made = images.compile_kernel, 0

    def counting(*arguments: Any) -> Any:
        nonlocal made
        made += 1
        return compile_kernel(*arguments)

    images.compile_kernel = counting
    try:
        begin = time.perf_counter()
        native = compile_for_gpus(on_gpu_alike(graph), (ARCHITECTURE,), CodegenOptions(cache=False))
        return made, time.perf_counter() - begin, len(native.libraries[ARCHITECTURE])
    finally:
        images.compile_kernel = compile_kernel


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["bert", "bert:0", "bert:01", "gpt2:01", "reductions:01"])
    parser.add_argument("--training", action="store_true")
    given = parser.parse_args()
    for each in given.names:
        measure(each, given.training)
