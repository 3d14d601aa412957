"""The guard and backend protocols are met by plain records and plain functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch.fx import GraphModule

from fx_interface import Backend, Guard, Source
from fx_interface.source import LocalSource


@dataclass(frozen=True, slots=True)
class IsPositive:
    kind: ClassVar[str] = "is_positive"
    source: Source

    def holds(self, value: Any) -> bool:
        return isinstance(value, int) and value > 0

    def explain(self, value: Any) -> str:
        return f"expected a positive int, found {value!r}"


def test_a_frozen_record_is_a_guard() -> None:
    guard = IsPositive(LocalSource("x"))
    assert isinstance(guard, Guard)
    assert guard.holds(3)
    assert not guard.holds("3")
    assert guard == IsPositive(LocalSource("x"))
    assert not isinstance(object(), Guard)


def test_a_function_is_a_backend() -> None:
    def backend(graph_module: GraphModule, example_inputs: Sequence[Any]) -> GraphModule:
        return graph_module

    assert isinstance(backend, Backend)
