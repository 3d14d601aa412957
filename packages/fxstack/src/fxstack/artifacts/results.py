"""What an export returns: how each tensor in the result is made, and the containers around them.

The form is that of ``fxstack_artifact.program.results`` and ``structure``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import torch

from aot_autograd.plan import (
    AsInference,
    Constant,
    FromGraph,
    FromInput,
    FromResult,
    JointPlan,
    Recipe,
    SameAs,
    ViewOf,
)
from fx_interface.symbols import Expr
from fxstack.artifacts.contract import Contract
from fxstack.artifacts.errors import ExportError
from fxstack.artifacts.exporting import Exported
from fxstack_artifact.program.structure import PLAIN

_OF = {0: "leaf", 1: "weight"}


class Results:
    """``makes``: how each tensor is made. ``node``: the result around them."""

    def __init__(self, exported: Exported, contract: Contract) -> None:
        check_plan(exported.graphs.plan)
        self._contract = contract
        recipes = exported.graphs.plan.recipes
        self.makes: list[Any] = [self._make(recipe, position) for position, recipe in enumerate(recipes)]
        self._known = {id(tensor): number for number, tensor in enumerate(exported.outputs)}
        self._leaves = {id(leaf): number for number, leaf in enumerate(exported.arguments.leaves)}
        self._constants = {id(tensor): number for number, tensor in enumerate(contract.constants)}
        numbers = any(not isinstance(output, torch.Tensor) for output in exported.outputs)
        self._numbers_vary = numbers or bool(contract.symbols)
        self.node = self._node(exported.result, "the result")

    def _make(self, recipe: Recipe | FromResult, position: int) -> Any:
        match recipe:
            case FromGraph(index):
                return ["graph", index]
            case FromInput(index) if self._contract.inputs[index][0] in _OF:
                of, number = self._contract.inputs[index]
                return [_OF[of], number]
            case SameAs(index) | FromResult(index) if index < position:
                return ["same", index]
            case Constant(value):
                return ["constant", value]
            case AsInference(made):
                return self._make(made, position)
            case ViewOf(base, steps):
                replayed = [
                    [step.op, [self._argument(arg) for arg in step.args],
                     {name: self._argument(arg) for name, arg in step.kwargs}, step.index,
                     *([True] if step.no_grad else [])]
                    for step in steps
                ]  # fmt: skip
                return ["view", self._make(base, position), replayed]
        raise unsupported(f"result {position} is made by {recipe}")

    def _argument(self, value: Any) -> Any:
        if isinstance(value, Expr):
            return {"expr": self._contract.expression(value)}
        if isinstance(value, (list, tuple)):
            return [self._argument(item) for item in value]
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if not isinstance(value, PLAIN):
            raise unsupported(f"a view of a result is made with {value!r}")
        return value

    def _node(self, value: Any, name: str) -> Any:
        if isinstance(value, torch.Tensor):
            return {"leaf": self._tensor(value, name)}
        if isinstance(value, PLAIN):
            varies = self._numbers_vary and isinstance(value, (int, float)) and not isinstance(value, bool)
            if varies or (isinstance(value, float) and not math.isfinite(value)):
                raise ExportError(
                    "FXS503",
                    f"{name} is the number {value}, which may be another one in another call",
                    action="return it as a tensor, or read it from a result's shape",
                )
            return {"const": value}
        if type(value) in (tuple, list):
            nodes = [self._node(item, f"{name}[{i}]") for i, item in enumerate(value)]
            return {type(value).__name__: nodes}
        if type(value) is dict and all(isinstance(key, (str, int)) for key in value):
            return {"dict": [[key, self._node(item, f"{name}[{key!r}]")] for key, item in value.items()]}
        fields = _fields(value)
        if fields is None:
            raise ExportError(
                "FXS503",
                f"{name} is a {type(value).__name__}",
                action="return tensors in tuples, lists, dicts, named tuples or data classes",
            )
        named = f"{type(value).__module__}.{type(value).__qualname__}"
        return {"record": [named, [[key, self._node(item, f"{name}.{key}")] for key, item in fields.items()]]}

    def _tensor(self, value: torch.Tensor, name: str) -> int:
        known = self._known.get(id(value))
        if known is not None:
            return known
        for of, table in ("leaf", self._leaves), ("weight", self._constants):
            if id(value) in table:
                self.makes.append([of, table[id(value)]])
                return len(self.makes) - 1
        raise ExportError(
            "FXS503",
            f"{name} is a tensor that neither the graph computed nor the model or its arguments hold",
            action="compute it from the arguments",
        )


def _fields(value: Any) -> Mapping[str, Any] | None:
    """The named parts of a named tuple, a mapping with attributes, or a data class."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: getattr(value, name) for name in value._fields}
    if (
        isinstance(value, dict)
        and dataclasses.is_dataclass(value)
        and all(isinstance(key, str) for key in value)
    ):
        return dict(value.items())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def check_plan(plan: JointPlan) -> None:
    """ExportError FXS508 for what autograd's runtime does around a graph and the loader does not."""
    for has, what in (
        (plan.forms, "an input gets another form"),
        (plan.marked, "an input is a lazy conjugate or negative"),
        (plan.placed, "a view of an input is taken by a place in memory"),
        (plan.born, "sizes come from data"),
        (plan.functional_forms, "an operator that writes has no functional form of torch's own"),
    ):
        if has:
            raise unsupported(what)


def unsupported(what: str) -> ExportError:
    return ExportError(
        "FXS508",
        f"the graph cannot be in an artifact: {what}",
        action="fxstack.compile runs it; please report it",
    )
