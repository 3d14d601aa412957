"""Graphs built by hand are valid, run, and may have symbolic sizes anywhere in their arguments."""

from __future__ import annotations

import operator

import torch

from fx_interface import GraphBuilder, InputKind, TensorSpec, verify

F32 = TensorSpec((4,), (1,), torch.float32, torch.device("cpu"))


def test_inputs_get_names_of_their_own() -> None:
    builder = GraphBuilder("torch")
    given = [builder.input(F32, name=name) for name in ("x", "x", "y", "x")]
    graph = builder.build(*given)
    verify(graph)
    assert [declared.name for declared in graph.meta["signature"].inputs] == ["x", "x_1", "y", "x_2"]
    assert graph(1, 2, 3, 4) == (1, 2, 3, 4)


def test_sizes_in_any_argument_become_nodes() -> None:
    builder = GraphBuilder("torch")
    size = builder.size(6)
    x = builder.input(TensorSpec((size,), (1,), torch.float32, torch.device("cpu")))
    half = TensorSpec((size // 2,), (1,), torch.float32, torch.device("cpu"))
    part = builder.call(operator.getitem, x, (slice(None, size // 2),), spec=half)
    full = builder.call(torch.full, [size // 2], fill_value=2.0, spec=half)
    graph = builder.build(builder.call(torch.mul, part, full, spec=half), size * 2)
    verify(graph)
    result, doubled = graph(5, torch.arange(5.0))
    assert (result.tolist(), doubled) == ([0.0, 2.0], 10)
    assert len(graph.graph.find_nodes(op="call_function", target=operator.floordiv)) == 1


def test_kinds_and_dialect_are_recorded() -> None:
    builder = GraphBuilder("aten")
    graph = builder.build(builder.input(F32, InputKind.PARAMETER))
    assert graph.meta["dialect"] == "aten"
    assert graph.meta["signature"].inputs[0].kind is InputKind.PARAMETER
