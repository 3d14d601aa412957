"""What a program puts in the place of torch's methods, of builtins and of facts about functions, between calls."""

from __future__ import annotations

import builtins
import types

import pytest
import torch

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3)


@pytest.fixture
def agrees(forward):
    """Runs a function, captured once, and as it is: the same."""

    def made(function):
        fast = optimize(forward)(function)

        def check():
            assert str(_caught(fast)) == str(_caught(function))

        check()
        return check

    return made


def _caught(function):
    try:
        return function(X)
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("name", ["numel", "stride", "element_size", "is_contiguous", "sum", "made_up"])
def test_a_method_of_tensors(agrees, monkeypatch, name):
    weight = torch.nn.Parameter(torch.ones(2, 2))
    check = agrees(lambda x: (x + 1, getattr(x, name)(), getattr(weight, name)()))
    monkeypatch.setattr(torch.Tensor, name, lambda self, *args: 5, raising=False)
    check()
    monkeypatch.undo()
    check()


def test_a_method_of_tensors_that_calls_the_one_before(agrees, monkeypatch):
    before = torch.Tensor.sum
    check = agrees(lambda x: x.sum() * 2)
    monkeypatch.setattr(torch.Tensor, "sum", lambda self: before(self) + 1)
    check()


def test_a_property_and_a_method_in_c(agrees, monkeypatch):
    check = agrees(lambda x: (x.T, x.numel(), x.nbytes, x * 2))
    monkeypatch.setattr(torch.Tensor, "T", property(lambda self: 7))
    monkeypatch.setattr(torch.Tensor, "numel", torch.Tensor.dim)
    check()


def test_getattr_of_modules(agrees, monkeypatch):
    net = torch.nn.Sequential(torch.nn.Linear(3, 3))
    check = agrees(lambda x: net[0].weight.sum() + x)
    monkeypatch.setattr(torch.nn.Module, "__getattr__", lambda self, name: torch.ones(3))
    check()
    monkeypatch.undo()
    check()


@pytest.mark.parametrize(("name", "given"), [("tensor", (2,)), ("zeros_like", (X,)), ("is_grad_enabled", ())])
def test_a_function_that_the_compiler_calls(agrees, monkeypatch, name, given):
    def program(x):
        return x * scales[0] + getattr(torch, name)(*given)

    scales = [1.5]
    check = agrees(program)
    scales[0] = 2.5
    monkeypatch.setattr(torch, name, lambda *args: True)
    check()
    scales[0] = 3.5
    monkeypatch.undo()
    check()


def test_import_is_replaced(agrees, monkeypatch):
    def program(x):
        y = x + 1
        import colorsys

        return y, colorsys.__name__

    def imported(name, *rest):
        return other if name == "colorsys" else before(name, *rest)

    other, before = types.ModuleType("other"), builtins.__import__
    check = agrees(program)
    monkeypatch.setattr(builtins, "__import__", imported)
    check()
    monkeypatch.undo()
    check()


FACTS = ("__name__", "__qualname__", "__module__", "__doc__", "__code__", "__defaults__", "__kwdefaults__")


@pytest.mark.parametrize("name", FACTS)
def test_facts_about_a_function(agrees, name):
    def one(x, a=1.5, *, b=2.5):
        return a

    def other(x, a=3.5, *, b=4.5):
        """Of the other one."""
        return a + b

    other.__module__ = "other"
    check = agrees(lambda x: (x + 1, str(getattr(one, name))[:12]))
    setattr(one, name, getattr(other, name))
    check()
    if name in ("__defaults__", "__kwdefaults__", "__doc__"):
        delattr(one, name)
        check()


@pytest.mark.parametrize("slots", [(), ("place",)])
@pytest.mark.parametrize("value", [1.5, 1, "text", None, 2j])
def test_what_is_only_found_to_be_there(agrees, slots, value):
    owner = type("Owner", (), {"__slots__": slots} if slots else {})()
    owner.place = value
    check = agrees(lambda x: (x + 1, hasattr(owner, "place")))
    del owner.place
    check()
