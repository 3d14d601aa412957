"""Kernels of these tests run in Triton's interpreter, on CPU tensors; it must be chosen before Triton is imported."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

os.environ["TRITON_INTERPRET"] = "1"

from inductor_codegen.ir.program import Program


@pytest.fixture(autouse=True)
def quiet_numpy() -> Iterator[None]:
    """The interpreter computes masked lanes too."""
    numpy = pytest.importorskip("numpy")
    with numpy.errstate(all="ignore"):
        yield


@pytest.fixture(autouse=True)
def numbers_of_one_element(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds of loops are arrays of one element in the interpreter, of which numpy 2.4 makes no number."""
    if find_spec("triton") is None:
        return
    from triton.runtime import interpreter

    original = interpreter._patch_lang_tensor

    def patch(tensor: Any, scope: Any) -> None:
        original(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    monkeypatch.setattr(interpreter, "_patch_lang_tensor", patch)


@pytest.fixture(autouse=True)
def no_kernels_of_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs on the CPU stand for graphs on a GPU, where running totals are the library's."""
    monkeypatch.setattr("inductor_codegen.schedule.programs.assemble.scan_kernels", lambda *_: [])


@pytest.fixture
def interpret(tmp_path: Path) -> Callable[[Program], Callable[..., Any]]:
    """Turns a program into a callable that runs in the interpreter."""
    pytest.importorskip("triton")
    from inductor_codegen.codegen.triton.launch.module import load_call
    from inductor_codegen.codegen.triton.wrapper import program_source

    numbers = itertools.count()

    def load(program: Program) -> Callable[..., Any]:
        file = (
            tmp_path / f"graph_{next(numbers)}.py"
        )  # bytecode of another would be taken for one of the same length
        file.write_text(program_source(program))
        return load_call(file)

    return load
