"""The stack's own modules do not see what a program puts in place of builtins."""

from __future__ import annotations

import builtins
import operator

import pytest
import torch

import fx_interface
from fx_interface import graph
from fx_interface.python_runtime import own_builtins
from fx_interface.python_runtime.own_builtins import OWN_BUILTINS, replaced
from fx_interface.symbols import symbol
from fx_interface.tensor_spec import SymSpec


def test_functions_and_methods_of_the_stack_have_builtins_of_their_own() -> None:
    assert graph.outputs.__builtins__ is OWN_BUILTINS
    assert fx_interface.GraphBuilder.input.__builtins__ is OWN_BUILTINS
    assert own_builtins.replaced.__builtins__ is not OWN_BUILTINS  # the one module that is there before


def test_a_replaced_builtin_is_named_and_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert replaced() is None
    with monkeypatch.context() as patched:
        patched.setattr(builtins, "len", lambda value: 3)
        found = replaced()
    assert found == "len"
    with monkeypatch.context() as patched:
        patched.delattr(builtins, "divmod")
        found = replaced()
    assert found == "divmod"
    with monkeypatch.context() as patched:
        patched.setattr(builtins, "print", lambda *values: None)
        patched.setattr(builtins, "one_more", 1, raising=False)
        found = replaced()
    assert found is None


def test_modules_of_functions_are_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    assert graph.operator is not operator
    built, first = torch.fx.Graph(), operator.add
    number = graph.set_spec(built.placeholder("s0"), SymSpec(symbol("s0")))
    monkeypatch.setattr(operator, "add", operator.sub)
    node = graph.materialize(built, symbol("s0") + 3, graph.symbol_nodes(built))
    assert isinstance(node, torch.fx.Node)
    assert node.target is first is not operator.add
    assert node.args == (number, 3)
