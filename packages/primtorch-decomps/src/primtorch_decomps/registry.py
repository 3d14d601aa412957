"""Registration: one decorated function for each decomposition and each spec rule, found by the operator's name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import torch
from torch._ops import OpOverload

from fx_interface.operators import SpecRule
from fx_interface.python_runtime.quick_dataclasses import dataclass
from primtorch_decomps.errors import DuplicateDeclarationError

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Decomposition:
    """How one operator is computed from primitives.

    ``function`` is called as the operator would be, with ``PrimTensor`` for tensors, and returns one, or a tuple or
    list, or ``NotImplemented`` for arguments that it leaves to the library call. ``family`` is the declaring module.
    """

    name: str
    function: Callable[..., Any]
    family: str

    @property
    def where(self) -> str:
        """File and line of the formula."""
        return _place(self.function)


def _place(function: Callable[..., Any]) -> str:
    formula = getattr(function, "formula", function)
    code = formula.__code__
    return f"{code.co_filename}:{code.co_firstlineno} ({formula.__qualname__})"


_DECOMPOSITIONS: dict[str, Decomposition] = {}
_RULES: dict[str, SpecRule] = {}


def declared(name: str) -> Decomposition | None:
    """The decomposition declared for the operator called ``name``, if any."""
    return _DECOMPOSITIONS.get(name)


def overload(name: str) -> OpOverload | None:
    """The operator called ``name`` (``"aten.add.Tensor"``), or None where this version of torch has none."""
    namespace, packet_name, overload_name = name.split(".")
    packet = getattr(getattr(torch.ops, namespace), packet_name, None)
    found = getattr(packet, overload_name, None)
    return found if isinstance(found, OpOverload) else None


def decomposes(*names: str, rule: SpecRule | None = None) -> Callable[[Function], Function]:
    """Declare a function as the named operators' decomposition; ``rule`` gives the specs that it does not imply."""

    def declare(function: Function) -> Function:
        for name in names:
            if name in _DECOMPOSITIONS:
                raise DuplicateDeclarationError(
                    "DEC201",
                    f"{name} has two decompositions: {_DECOMPOSITIONS[name].where} and {_place(function)}",
                    action="remove one, or override the table with DECOMPOSITIONS | {...}",
                )
            family = function.__module__.rpartition(".")[2]
            _DECOMPOSITIONS[name] = Decomposition(name, function, family)
            if rule is not None:
                _declare_rule(name, rule)
        return function

    return declare


def spec_rule(*names: str) -> Callable[[Function], Function]:
    """Declare a function as the spec rule of the named operators."""

    def declare(function: Function) -> Function:
        for name in names:
            _declare_rule(name, function)
        return function

    return declare


def _declare_rule(name: str, rule: SpecRule) -> None:
    if name in _RULES:
        raise DuplicateDeclarationError(
            "DEC201",
            f"{name} has two spec rules: {_place(_RULES[name])} and {_place(rule)}",
            action="remove one",
        )
    _RULES[name] = rule


class OperatorTable(Mapping[OpOverload, Any]):
    """An immutable mapping from operator to decomposition (or rule). ``|`` adds or overrides, ``without`` removes."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[OpOverload, Any]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, op: OpOverload) -> Any:
        return self._entries[op]

    def get(self, op: Any, default: Any = None) -> Any:
        """The entry of ``op``, or ``default``."""
        return self._entries.get(op, default)

    def __iter__(self) -> Iterator[OpOverload]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __or__(self, other: Mapping[OpOverload, Any]) -> OperatorTable:
        return OperatorTable({**self._entries, **other})

    def without(self, *ops: OpOverload) -> OperatorTable:
        """The table less some operators, which then stay library calls."""
        return OperatorTable({op: entry for op, entry in self._entries.items() if op not in ops})


def decomposition_table() -> OperatorTable:
    """Everything declared so far whose operator this version of torch has."""
    return OperatorTable(
        {op: entry for name, entry in _DECOMPOSITIONS.items() if (op := overload(name)) is not None}
    )


def rule_table() -> OperatorTable:
    """Every spec rule declared so far whose operator this version of torch has."""
    return OperatorTable({op: entry for name, entry in _RULES.items() if (op := overload(name)) is not None})
