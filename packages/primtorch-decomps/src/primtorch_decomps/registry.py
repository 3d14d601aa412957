"""Registration: one decorated function for each decomposition and each spec rule, found by the operator's name.

A family's module is loaded when the first of its operators is asked for; ``index`` says which module that is.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import torch
from torch._ops import OpOverload

from fx_interface.operators import SpecRule
from fx_interface.python_runtime.quick_dataclasses import dataclass
from primtorch_decomps.errors import DuplicateDeclarationError
from primtorch_decomps.index import BY_PREFIX, DECOMPOSED, RULED

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Decomposition:
    """How one operator is computed from primitives.

    ``function`` is called as the operator would be, with ``PrimTensor`` for tensors, and returns one, or a tuple or
    list, or ``NotImplemented`` for arguments that it leaves to the library call. ``family`` is the declaring module.
    Of several results ``function`` may leave some out, with None for each of ``without``: for a graph that reads one of
    those ``whole`` computes all, and without it the library call stays.
    """

    name: str
    function: Callable[..., Any]
    family: str
    without: tuple[int, ...] = ()
    whole: Callable[..., Any] | None = None

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


def _by_name(modules: Mapping[str, str]) -> dict[str, str]:
    return {
        name if name.count(".") > 1 else f"aten.{name}": module
        for module, names in modules.items()
        for name in names.split()
    }


_DECOMPOSED_IN = _by_name(DECOMPOSED)
_RULED_IN = _by_name(RULED)


def declared(name: str) -> Decomposition | None:
    """The decomposition declared for the operator called ``name``, if any."""
    if name not in _DECOMPOSITIONS:
        _load(name, _DECOMPOSED_IN)
    return _DECOMPOSITIONS.get(name)


def ruled(name: str) -> SpecRule | None:
    """The spec rule declared for the operator called ``name``, if any."""
    if name not in _RULES:
        _load(name, _RULED_IN)
    return _RULES.get(name)


def _load(name: str, homes: Mapping[str, str], asking: str = "") -> None:
    """Load the module that declares the operator, unless it is the one that asks."""
    home = homes.get(name)
    if home is None:
        short = name.removeprefix("aten.")
        home = next((module for prefix, module in BY_PREFIX.items() if short.startswith(prefix)), None)
    if home is not None and home != asking:
        importlib.import_module(home)


def load_all() -> None:
    """Load every family."""
    for module in sorted({*DECOMPOSED, *RULED, *BY_PREFIX.values()}):
        importlib.import_module(module)


def overload(name: str) -> OpOverload | None:
    """The operator called ``name`` (``"aten.add.Tensor"``), or None where this version of torch has none."""
    namespace, packet_name, overload_name = name.split(".")
    packet = getattr(getattr(torch.ops, namespace), packet_name, None)
    found = getattr(packet, overload_name, None)
    return found if isinstance(found, OpOverload) else None


def decomposes(
    *names: str,
    rule: SpecRule | None = None,
    without: tuple[int, ...] = (),
    whole: Callable[..., Any] | None = None,
) -> Callable[[Function], Function]:
    """Declare a function as the named operators' decomposition; ``rule`` gives the specs that it does not imply,
    ``without`` which results it leaves out, and ``whole`` computes all where one of these is read."""

    def declare(function: Function) -> Function:
        for name in names:
            _load(name, _DECOMPOSED_IN, function.__module__)
            if name in _DECOMPOSITIONS:
                raise DuplicateDeclarationError(
                    "DEC201",
                    f"{name} has two decompositions: {_DECOMPOSITIONS[name].where} and {_place(function)}",
                    action="remove one, or override the table with DECOMPOSITIONS | {...}",
                )
            family = function.__module__.rpartition(".")[2]
            _DECOMPOSITIONS[name] = Decomposition(name, function, family, without, whole)
            if rule is not None:
                _declare_rule(name, rule, function.__module__)
        return function

    return declare


def spec_rule(*names: str) -> Callable[[Function], Function]:
    """Declare a function as the spec rule of the named operators."""

    def declare(function: Function) -> Function:
        for name in names:
            _declare_rule(name, function, function.__module__)
        return function

    return declare


def _declare_rule(name: str, rule: SpecRule, asking: str) -> None:
    _load(name, _RULED_IN, asking)
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
        return OperatorTable({**self, **other})

    def without(self, *ops: OpOverload) -> OperatorTable:
        """The table less some operators, which then stay library calls."""
        return OperatorTable({op: entry for op, entry in self.items() if op not in ops})


class DeclaredTable(OperatorTable):
    """What the families declare for the operators that this version of torch has, loaded when it is asked for."""

    __slots__ = ("_absent", "_find", "_names")

    def __init__(self, find: Callable[[str], Any], names: Callable[[], Iterable[str]]) -> None:
        super().__init__({})
        self._absent: set[Any] = set()
        self._find = find
        self._names: Callable[[], Iterable[str]] | None = names

    def __getitem__(self, op: OpOverload) -> Any:
        found = self.get(op)
        if found is None:
            raise KeyError(op)
        return found

    def get(self, op: Any, default: Any = None) -> Any:
        """The entry of ``op``, or ``default``."""
        found = self._entries.get(op)
        if found is None and op not in self._absent:
            found = self._find(str(op)) if isinstance(op, OpOverload) else None
            if found is None:
                self._absent.add(op)
            else:
                self._entries[op] = found
        return default if found is None else found

    def __contains__(self, op: object) -> bool:
        return self.get(op) is not None

    def __iter__(self) -> Iterator[OpOverload]:
        self._load_all()
        return super().__iter__()

    def __len__(self) -> int:
        self._load_all()
        return super().__len__()

    def _load_all(self) -> None:
        if self._names is not None:
            load_all()
            for name in sorted(self._names()):
                self.get(overload(name))
            self._names = None


DECOMPOSITIONS: OperatorTable = DeclaredTable(declared, lambda: _DECOMPOSITIONS)
"""Decomposition of every operator that has one. ``DECOMPOSITIONS | {op: function}`` overrides, ``without`` removes."""

RULES: OperatorTable = DeclaredTable(ruled, lambda: _RULES)
"""Spec rule of every operator whose spec its decomposition does not imply."""
