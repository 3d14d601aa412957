"""The conformance suite accepts a right backend, and each of its tests catches a wrong one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from fx_interface import UnsupportedProgramError, print_graph, verify
from fx_interface.conformance import CASES, DYNAMIC_CASES, BackendConformance
from fx_interface.conformance.recorder import clone_inputs


def run_eagerly(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Sequence[Any]]:
    return graph_module


class TestEager(BackendConformance):
    backend = staticmethod(run_eagerly)


@pytest.mark.parametrize("name", [*CASES, *DYNAMIC_CASES])
def test_every_case_is_a_valid_graph(name: str) -> None:
    graph = {**CASES, **DYNAMIC_CASES}[name].graph()
    verify(graph, "torch")
    assert print_graph(graph).startswith("graph(torch):")


def detached_results(graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    return lambda *given: [x.clone() if isinstance(x, torch.Tensor) else x for x in graph(*given)]


def copied_inputs(graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    return lambda *given: graph(*clone_inputs(given))


def contiguous_results(graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    return lambda *given: [x.contiguous() if isinstance(x, torch.Tensor) else x for x in graph(*given)]


def frozen_first_result(graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    results = graph(*clone_inputs(inputs))
    return lambda *given: results


def runs_on_examples(graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    graph(*inputs)
    return graph


def float64_results(graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    return lambda *given: [x.double() if isinstance(x, torch.Tensor) else x for x in graph(*given)]


@pytest.mark.parametrize(
    "wrong, case",
    [
        (detached_results, "view_of_an_input"),
        (detached_results, "one_result_twice"),
        (copied_inputs, "mutated_input"),
        (contiguous_results, "result_strides"),
        (frozen_first_result, "pointwise"),
        (runs_on_examples, "mutated_input"),
        (float64_results, "pointwise"),
        (lambda graph, inputs: lambda *given: graph(*given)[0], "pointwise"),
    ],
)
def test_catches_a_wrong_backend(wrong: Callable[..., Any], case: str) -> None:
    class Wrong(BackendConformance):
        backend = staticmethod(wrong)

    with pytest.raises(AssertionError):
        Wrong().test_agrees_with_eager(CASES[case])


def test_catches_specialisation_to_the_hint() -> None:
    def specialised(graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        for atom in graph.meta["shape_env"].symbols:
            graph.meta["shape_env"].specialize(next(iter(_expr(graph, atom))))
        return graph

    class Specialised(BackendConformance):
        backend = staticmethod(specialised)

    with pytest.raises(AssertionError, match="only the sizes compiled for"):
        Specialised().test_symbolic_sizes(DYNAMIC_CASES["dynamic_pointwise"])


def _expr(graph: GraphModule, atom: Any) -> list[Any]:
    return [d.spec.expr for d in graph.meta["signature"].inputs if getattr(d.spec, "expr", None) is not None]


def test_unsupported_cases_must_say_so() -> None:
    def rejects(graph: GraphModule, inputs: Sequence[Any]) -> Any:
        raise UnsupportedProgramError("XYZ001", "no")

    class Rejects(BackendConformance):
        backend = staticmethod(rejects)
        unsupported = frozenset({"pointwise"})

    with pytest.raises(pytest.skip.Exception):
        Rejects().test_agrees_with_eager(CASES["pointwise"])
    with pytest.raises(UnsupportedProgramError):
        Rejects().test_agrees_with_eager(CASES["reductions"])

    class Pretends(BackendConformance):
        backend = staticmethod(run_eagerly)
        unsupported = frozenset({"pointwise"})

    with pytest.raises(pytest.fail.Exception):
        Pretends().test_agrees_with_eager(CASES["pointwise"])


def test_catches_reused_result_memory() -> None:
    def reuses(graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        kept = graph(*clone_inputs(inputs))

        def run(*given: Any) -> Any:
            return [x.copy_(y) for x, y in zip(kept, graph(*given), strict=True)]

        return run

    class Reuses(BackendConformance):
        backend = staticmethod(reuses)

    with pytest.raises(AssertionError, match="earlier call's result"):
        Reuses().test_results_are_not_reused()
