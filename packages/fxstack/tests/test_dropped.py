"""What is dropped is freed: functions, modules, their code, and what was compiled for them."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

import fxstack

TEXTS = {
    "plain": "def f(x): return x * 2 + 1",
    "break": "def f(x):\n    y = x * 2\n    print(end='')\n    return y + 1",
    "class": "class C:\n    def m(self, x): return x + 1\ndef f(x): return C().m(x)",
    "module": "f = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())",
}


def _made(text: str) -> Callable[..., Any]:
    space: dict[str, Any] = {"torch": torch, "__name__": "dropped"}
    exec(compile(text, "<dropped>", "exec"), space)
    return space["f"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("kind", TEXTS)
def test_all_is_freed(kind: str, backend: str) -> None:
    function = _made(TEXTS[kind])
    compiled = fxstack.compile(function, backend=backend)
    (code,) = compiled.__fxstack_capture__.targets.values()
    references = [weakref.ref(function), weakref.ref(code)]
    for rows in (2, 3):
        assert torch.equal(compiled(torch.ones(rows, 4)), function(torch.ones(rows, 4)))
    del function, compiled, code
    gc.collect()
    assert [reference() for reference in references] == [None, None]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_module_and_its_class_are_freed_as_in_eager(backend: str) -> None:
    def references() -> list[weakref.ref[Any]]:
        parameter = torch.nn.Parameter(torch.ones(3))

        class Module(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.p = parameter

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.p * x

        module = Module()
        compiled = fxstack.compile(module, backend=backend)
        compiled(torch.ones(3))
        return [weakref.ref(module), weakref.ref(compiled), weakref.ref(Module), weakref.ref(parameter)]

    gc.disable()
    try:
        found = references()
        assert [one() for one in found[:2]] == [None, None]
    finally:
        gc.enable()
    gc.collect()
    assert [one() for one in found] == [None] * 4
