"""Which programs a CUDA graph cannot repeat."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from fx_interface.symbols import Symbol
from inductor_codegen.ir.program import Born, Buffer, BufferRef, CallExtern, Program
from inductor_codegen.native.recordable import why_not_recorded

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")
aten = torch.ops.aten


def buffer(name: str, device: torch.device = GPU) -> Buffer:
    return Buffer(name, (4, 4), (4, 1), torch.float32, device)


def program(
    op: Any, *more: Any, device: torch.device = GPU, result: torch.device = GPU, **call: Any
) -> Program:
    step = CallExtern(op, (BufferRef("x"), *more), (), (buffer("y", result),), **call)
    return Program((buffer("x", device),), (), (step,), (BufferRef("y"),))


@pytest.fixture
def own_operator() -> Iterator[Any]:
    with torch.library._scoped_library("recordable_test", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        yield torch.ops.recordable_test.twice.default


def test_what_may_be_recorded() -> None:
    assert why_not_recorded(program(aten.relu.default)) == ""
    assert why_not_recorded(program(aten.bernoulli.default)) == ""


def test_what_is_not_recorded(own_operator: Any) -> None:
    assert "x is on the CPU" in why_not_recorded(program(aten.relu.default, device=CPU))
    assert "y is on the CPU" in why_not_recorded(program(aten._to_copy.default, result=CPU))
    assert "from data" in why_not_recorded(program(aten.nonzero.default, born=(Born(Symbol("u0"), 0),)))
    assert "waits" in why_not_recorded(program(aten.nonzero.default))
    assert "not known" in why_not_recorded(program(own_operator))
    if torch.distributed.is_available():
        importlib.import_module("torch.distributed._functional_collectives")  # defines the operators
        reduce = torch.ops._c10d_functional.all_reduce.default
        assert "other processes" in why_not_recorded(program(reduce, "sum", "0"))
