"""What each stage passes on is a valid graph of its dialect, can be stored and read back, and computes the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

import aot_autograd
import inductor_codegen
import primtorch_decomps
from fx_interface import (
    TensorSpec,
    ValueSpec,
    canonical_hash,
    from_json,
    outputs,
    placeholders,
    spec_of_node,
    to_json,
    verify,
)
from fx_interface.conformance import BackendConformance
from fx_interface.symbols import Symbol, evaluate


def checked(graph: GraphModule, dialect: str) -> GraphModule:
    """The graph after a way through JSON, verified before and after."""
    verify(graph, dialect)
    again = from_json(to_json(graph))
    verify(again, dialect)
    assert canonical_hash(again) == canonical_hash(graph)
    return again


def run_primitives(graph: GraphModule) -> Callable[..., Sequence[Any]]:
    """Runs the primitives' references, and gives results the strides that their specs ask of a compiler."""
    prims = checked(primtorch_decomps.decompose(checked(graph, "aten")), "prims")
    specs = [spec_of_node(result) if isinstance(result, Node) else None for result in outputs(prims.graph)]

    def run(*inputs: Any) -> list[Any]:
        sizes = {
            place.meta["spec"].expr.as_symbol: value
            for place, value in zip(placeholders(prims.graph), inputs, strict=True)
            if isinstance(value, int)
        }
        return [laid_out(value, spec, sizes) for value, spec in zip(prims(*inputs), specs, strict=True)]

    return run


def laid_out(value: Any, spec: ValueSpec, sizes: dict[Symbol, int]) -> Any:
    """The value in memory as its spec says."""
    if not isinstance(spec, TensorSpec):
        return value
    strides = tuple(evaluate(stride, sizes) for stride in spec.strides)
    if value.stride() == strides:
        return value
    return torch.empty_strided(value.shape, strides, dtype=value.dtype).copy_(value)


def generate_code(graph: GraphModule) -> Callable[..., Sequence[Any]]:
    """Compiles the primitives to native code."""
    return inductor_codegen.compile_graph(
        checked(primtorch_decomps.decompose(checked(graph, "aten")), "prims")
    )


def stages(compiler: Callable[[GraphModule], Callable[..., Sequence[Any]]]) -> Callable[..., Any]:
    """The backend that ends in ``compiler``."""

    def backend(graph: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Sequence[Any]]:
        verify(graph, "torch")
        return aot_autograd.compile_joint(
            graph,
            example_inputs,
            operators=primtorch_decomps.LIBRARY,
            forward_compiler=compiler,
            backward_compiler=compiler,
            inference_compiler=compiler,
        )

    return backend


class TestReferences(BackendConformance):
    backend = staticmethod(stages(run_primitives))


class TestNativeCode(BackendConformance):
    backend = staticmethod(stages(generate_code))
