"""Small parts of inputs that are overwritten stay calls, with places from the front; all else becomes a formula."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule

from fx_interface.signature import (
    DIALECT_KEY,
    SHAPE_ENV_KEY,
    SIGNATURE_KEY,
    InputDecl,
    InputKind,
    OutputDecl,
    OutputKind,
    Signature,
)
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of
from primtorch_decomps import decompose

aten = torch.ops.aten
SLICE, SELECT = aten.slice_scatter.default, aten.select_scatter.default


def written(op: Any, *places: Any, rows: int = 3, is_read: bool = False, is_new: bool = True) -> Any:
    """The calls of ``op`` that are left where it overwrites a part of 40 rows, and the one's places."""
    graph = Graph()
    whole, part = torch.zeros(40, 6), torch.zeros(6) if op is SELECT else torch.zeros(rows, 6)
    nodes = []
    for name, tensor in (("whole", whole), ("part", part)):
        node = graph.placeholder(name)
        node.meta["spec"] = spec_of(tensor)
        nodes.append(node)
    made = graph.call_function(op, (*nodes, *places))
    made.meta["spec"] = spec_of(whole)
    results = [made]
    if is_read:
        results.append(graph.call_function(aten.exp.default, (nodes[0],)))
        results[-1].meta["spec"] = spec_of(whole)
    graph.output(tuple(results))
    module = GraphModule(torch.nn.Module(), graph)
    kinds = [OutputDecl(OutputKind.MUTATED_INPUT, 0) if is_new else OutputDecl(OutputKind.USER)]
    kinds += [OutputDecl(OutputKind.USER)] * is_read
    inputs = tuple(InputDecl(node.name, InputKind.USER, node.meta["spec"]) for node in nodes)
    module.meta |= {DIALECT_KEY: "aten", SHAPE_ENV_KEY: ShapeEnv()}
    module.meta[SIGNATURE_KEY] = Signature(inputs, tuple(kinds))
    calls = [node for node in decompose(module).graph.nodes if node.target is op]
    return calls[0].args[2:] if calls else None


@pytest.mark.parametrize(
    ("op", "given", "places"),
    [
        (SLICE, (0, 2, 5), (0, 2, 5, 1)),
        (SLICE, (0, -3, 1 << 63), (0, 37, 40, 1)),
        (SLICE, (-2, 2, 8, 2), (0, 2, 8, 2)),
        (SELECT, (0, -1), (0, 39)),
    ],
)
def test_places_are_counted_from_the_front(op: Any, given: Any, places: Any) -> None:
    assert written(op, *given) == places


@pytest.mark.parametrize("options", [{"is_read": True}, {"is_new": False}])
def test_what_nobody_writes_in_place_is_a_formula(options: dict[str, bool]) -> None:
    assert written(SLICE, 0, 2, 5, **options) is None


def test_large_parts_are_formulas() -> None:
    assert written(SLICE, 0, 2, 13, rows=11) is None
