"""Signatures are values, and graphs that did not come from this stack have none."""

from __future__ import annotations

import torch
from torch.fx import Graph, GraphModule

from fx_interface import InputDecl, InputKind, OutputDecl, OutputKind, Signature, SymSpec, signature_of


def graph() -> GraphModule:
    made = Graph()
    made.output(())
    return GraphModule(torch.nn.Module(), made)


def test_signatures_are_values() -> None:
    inputs = (InputDecl("n", InputKind.SYMBOL, SymSpec(4)),)
    outputs = (OutputDecl(OutputKind.MUTATED_INPUT, 0),)
    assert Signature(inputs, outputs) == Signature(tuple(inputs), tuple(outputs))
    assert len({Signature(inputs, outputs), Signature(inputs, outputs), Signature((), ())}) == 2


def test_a_graph_has_its_signature_or_none() -> None:
    made = graph()
    assert signature_of(made) is None
    made.meta["signature"] = Signature((), ())
    assert signature_of(made) == Signature((), ())
