"""Builtins and special methods of tensors that a program replaces, before the first call and between calls."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

import dynamo_capture
from dynamo_capture.values.special_methods import replaced_method

CASES: dict[str, tuple[Callable[..., Any], Any]] = {
    "__add__": (lambda h: h + 1, lambda one, two: torch.sub(one, two)),
    "__radd__": (lambda h: 1 + h, lambda one, two: torch.sub(one, two)),
    "__neg__": (lambda h: -h, lambda one: torch.clone(one)),
    "__lt__": (lambda h: h < 0, lambda one, two: torch.clone(one)),
    "__len__": (lambda h: torch.add(h, len(h)), lambda one: 17),
    "__iter__": (lambda h: [*h], lambda one: iter([one])),
    "__abs__": (lambda h: abs(h), lambda one: torch.clone(one)),
    "shape": (lambda h: torch.add(h, h.shape[0]), property(lambda one: (5,))),
}

# CPython leaves a slot of sequences behind on a class whose ``__getitem__`` was replaced, and torch takes its tensors
# for sequences from then on: that case has a process of its own.
if "OWN_PROCESS" in os.environ:
    CASES["__getitem__"] = (lambda h: h[0], lambda one, index: torch.clone(one))


def _replacing(name: str, value: Any, call: Callable[[], Any]) -> Any:
    own = vars(torch.Tensor).get(name)
    setattr(torch.Tensor, name, value)
    try:
        return call()
    finally:
        if own is None:
            delattr(torch.Tensor, name)
        else:
            setattr(torch.Tensor, name, own)


def _same(one: Any, two: Any) -> bool:
    ones, twos = (list(x) if isinstance(x, list) else [x] for x in (one, two))
    return len(ones) == len(twos) and all(map(torch.equal, ones, twos))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("steps", [(True, True, False), (False, True, False)])
def test_a_special_method_that_is_replaced(name: str, steps: tuple[bool, ...]) -> None:
    function, value = CASES[name]
    dynamo_capture.reset()
    compiled = dynamo_capture.optimize(dynamo_capture.run_graph)(function)
    for is_replaced in steps:
        results = []
        for called in (function, compiled):
            x = torch.linspace(-1, 1, 6).reshape(2, 3)
            call = lambda called=called, x=x: called(x)
            results.append(_replacing(name, value, call) if is_replaced else call())
        assert _same(*results)


def test_item_access_in_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "__getitem__", __file__]
    done = subprocess.run(
        command, env=os.environ | {"OWN_PROCESS": "1"}, capture_output=True, text=True, check=False
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_it_is_named() -> None:
    assert replaced_method() is None
    assert _replacing("__add__", lambda one, two: one, replaced_method) == "__add__"
    assert _replacing("something_new", 1, replaced_method) is None


@pytest.mark.parametrize(
    "name", ["abs", "len", "isinstance", "getattr", "zip", "range", "type", "tuple", "id"]
)
@pytest.mark.parametrize("steps", [(True, True, False), (False, True, False)])
def test_a_builtin_that_is_replaced(
    name: str, steps: tuple[bool, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        for i in (1, 2):
            x = x * i + x.sum()
        return x.relu()

    def using(x: torch.Tensor) -> Any:
        return torch.add(x, abs(-2))

    x = torch.linspace(-1, 1, 6)
    expected = function(x), using(x)
    compiled = [dynamo_capture.optimize(dynamo_capture.run_graph)(f) for f in (function, using)]
    for is_replaced in steps:
        with monkeypatch.context() as patched:
            if is_replaced:
                patched.setattr(builtins, name, lambda *values, **options: 50)
            results = [f(x) for f in compiled]
        assert torch.equal(results[0], expected[0])
        assert torch.equal(results[1], torch.add(x, 50) if is_replaced and name == "abs" else expected[1])


def test_builtins_of_a_function_s_own() -> None:
    space: dict[str, Any] = {"__builtins__": {"abs": lambda value: 7}, "torch": torch}
    exec("def f(x): return torch.add(x, abs(-2))", space)
    compiled = dynamo_capture.optimize(dynamo_capture.run_graph)(space["f"])
    assert compiled(torch.zeros(1)).item() == 7
    space["__builtins__"]["abs"] = lambda value: 8
    assert compiled(torch.zeros(1)).item() == 8
