"""Gradients that torch makes of what the backward graph gives: sparse tensors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import torch

from aot_autograd.plan import FromCall, GradientBehind, GraphPart, JointPlan
from aot_autograd.runtime.gradients.incoming_gradients import known_sizes
from aot_autograd.runtime.results import operator_named
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import Expr, Symbol, evaluate

_NOT_THERE: Final = object()
_ADD: Final = "aten::add.Tensor"


@dataclass(frozen=True, slots=True)
class _Graph:
    """One run of the backward graph: its inputs and results, the tangents that have not arrived, symbols."""

    given: Sequence[Any]
    results: Sequence[Any]
    missing: frozenset[int]
    known: Mapping[Symbol, int]


class GradientsBehind:
    """Called with the backward graph's inputs and results, the tangents that have not arrived, and the sizes of the
    call; gives each input's gradient by the input's number, None where none of what it is made of has arrived."""

    __slots__ = ("_made", "_operators", "_plan")

    def __init__(self, plan: JointPlan, made: Sequence[GradientBehind]) -> None:
        self._plan = plan
        self._made = made
        self._operators = {call.op: operator_named(call.op) for one in made for call in one.calls}

    def __call__(
        self, given: Sequence[Any], results: Sequence[Any], missing: Collection[int], sizes: Sequence[int]
    ) -> dict[int, torch.Tensor | None]:
        known = known_sizes(self._plan, sizes) if sizes else {}
        graph = _Graph(given, results, frozenset(missing), known)
        return {one.input_index: self._gradient(one, graph) for one in self._made}

    def _gradient(self, one: GradientBehind, graph: _Graph) -> torch.Tensor | None:
        found: list[Any] = []
        for call in one.calls:
            args = [_real(arg, graph, found) for arg in call.args]
            there = [arg for arg in args if arg is not _NOT_THERE]
            if len(there) == len(args):
                if call.op == _ADD and args[0].is_sparse and not args[1].is_sparse:
                    args = args[::-1]  # as torch's engine, for there is no other sum
                kwargs = {name: _real(arg, graph, found) for name, arg in call.kwargs}
                found.append(self._operators[call.op](*args, **kwargs))
            elif call.op == _ADD and there:  # as torch's engine, which adds only what has arrived
                found.append(there[0])
            else:
                found.append(_NOT_THERE)
        return None if found[-1] is _NOT_THERE else found[-1]


def _real(arg: Any, graph: _Graph, found: Sequence[Any]) -> Any:
    """An argument of a call; ``found``: what the calls before it have given."""
    match arg:
        case FromCall(index):
            return found[index]
        case GraphPart(place, depends):
            if depends and graph.missing.issuperset(depends):
                return _NOT_THERE
            return graph.results[place] if place >= 0 else graph.given[-1 - place]
        case Expr():
            return evaluate(arg, graph.known)
        case list() | tuple():
            return [_real(part, graph, found) for part in arg]
    return arg
