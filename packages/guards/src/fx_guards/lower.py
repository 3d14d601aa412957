"""From the tree of guards to the tuples that the native evaluator and fetcher are built from.

A node is ``(access, key, index, slot, number only, checks, children, live children)``; a check is
``(op, lasting, guard index, operand, number, program, tensor facts)``. What no rule covers is checked by the record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from fx_guards import _native
from fx_guards.errors import GuardError
from fx_guards.kinds import containers, definitions, relations, values
from fx_guards.kinds.base import KINDS
from fx_guards.root_sources import KnownObjectSource, NamespaceSource, StateSource
from fx_guards.torch_bridge import state_program, tensor_facts
from fx_guards.tree import GuardSet, TreeNode, sources_of
from fx_interface import source as sources
from fx_interface.guard import Guard
from fx_interface.source import Source
from fx_interface.symbols import Apply, IntLike, Relation, RelationOp, Symbol

NodeTuple = tuple[Any, ...]
CheckTuple = tuple[Any, ...]
_Lowered = tuple[str, int, Any, int]

_A = _native.ACCESSES
_C = _native.CHECKS
_OPS = _native.SHAPE_OPS
NEVER, WITH_VALUE, WITH_DICT = 0, 1, 2
_NO_INDEX = -(2**31)
_EXTENTS = (sources.SizeSource, sources.StrideSource)
_ITEMS = (sources.ItemSource, sources.DictKeySource)
_IN_PYTHON = (_C["python"], _C["python_many"])
_IMMUTABLE = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))


class Lowering:
    """One frame's lowering: knows its argument slots and free variables by name."""

    def __init__(self, varnames: Sequence[str] = (), freevars: Sequence[str] = ()) -> None:
        self._slots = {name: index for index, name in enumerate(varnames)}
        self._cells = {name: index for index, name in enumerate(freevars)}

    def evaluator(self, guards: GuardSet) -> tuple[tuple[NodeTuple, ...], tuple[CheckTuple, ...], int]:
        """The arguments of ``_native.Evaluator``; cheap roots first."""
        checks = tuple(relation_check(i, guard, guards) for i, guard in guards.relations)
        return _cheap_first(list(map(self._node, guards.roots))), checks, guards.slot_count

    def _node(self, node: TreeNode) -> tuple[int, NodeTuple]:
        """A rough number of nanoseconds that one node costs with all below it, and the node."""
        read = _DERIVED.get(type(node.source))
        access, key, index = read(node.source) if read is not None else self._access(node.source)
        checks: list[CheckTuple] = []
        cost = 5
        for i, guard in node.guards:
            check = value_check(i, guard)
            checks.append(check)
            cost += 50 if check[0] in _IN_PYTHON else 5
        if not node.children:
            return cost, (access, key, index, node.slot, _number_only(node), tuple(checks), (), 0)
        live: list[tuple[int, NodeTuple]] = []
        rest: list[tuple[int, NodeTuple]] = []
        for child in node.children:
            lowered = self._node(child)
            cost += lowered[0]
            (rest if _skippable(child, lowered[1]) else live).append(lowered)
        children = _cheap_first(live) + _cheap_first(rest)
        return cost, (access, key, index, node.slot, False, tuple(checks), children, len(live))

    def _access(self, source: Source) -> tuple[int, Any, int]:
        match source:
            case sources.LocalSource(name):
                return _A["local"], name, self._slots.get(name, -1)
            case sources.ClosureSource(name):
                return _A["closure"], name, self._cells.get(name, -1)
            case sources.GlobalSource(name):
                return _A["global"], name, 0
            case sources.BuiltinSource(name):
                return _A["builtin"], name, 0
            case sources.ImportedModuleSource(name):
                return _A["module"], name, 0
            case StateSource():
                return _A["state"], None, 0
            case NamespaceSource():
                return _A["namespace"], None, 0
            case _ if source.base is None:
                raise GuardError(
                    "GRD001",
                    f"no evaluator knows how to read the root source {source!r}",
                    action="derive it from a source of fx_interface",
                )
        return derived_access(source)


def _of_item(source: sources.ItemSource) -> tuple[int, Any, int]:
    key = source.key
    return _A["item"], key, key if type(key) is int and abs(key) < 2**31 else _NO_INDEX


_DERIVED: dict[type, Callable[[Any], tuple[int, Any, int]]] = {
    sources.AttrSource: lambda source: (_A["attr"], source.name, 0),
    sources.InstanceDictSource: lambda source: (_A["instance_dict"], None, 0),
    KnownObjectSource: lambda source: (_A["known"], source.step(None), 0),
    sources.ItemSource: _of_item,
    sources.DictKeySource: lambda source: (_A["dict_key"], None, source.index),
    sources.TypeSource: lambda source: (_A["type"], None, 0),
    sources.SizeSource: lambda source: (_A["size"], None, source.dim),
    sources.StrideSource: lambda source: (_A["stride"], None, source.dim),
}


def derived_access(source: Source) -> tuple[int, Any, int]:
    """(access, key, index) of a source that reads from another; a kind not known here (or derived) reads itself."""
    read = _DERIVED.get(type(source))
    return (_A["python"], source.step, 0) if read is None else read(source)


def _number_only(node: TreeNode) -> bool:
    return type(node.source) in _EXTENTS and node.slot >= 0 and not node.guards and not node.children


def _cheap_first(lowered: list[tuple[int, NodeTuple]]) -> tuple[NodeTuple, ...]:
    """The nodes, in an order that looks first where a look is cheap."""
    if len(lowered) > 1:
        lowered.sort(key=itemgetter(0))
    return tuple([node for _, node in lowered])


def _skippable(child: TreeNode, lowered: NodeTuple) -> bool:
    """Whether a child of an unchanged dict needs no look: nothing below it, and each guard lasts with the value."""
    if child.children or child.slot >= 0 or type(child.source) not in _ITEMS:
        return False
    return not any(map(_may_change, lowered[5]))


def _may_change(check: CheckTuple) -> bool:
    return check[1] != WITH_VALUE  # type: ignore[no-any-return]


def _is_own(guard: Guard) -> bool:
    """Whether the guard is of a kind declared here, whose meaning the native checks know."""
    return KINDS.get(guard.kind) is type(guard)


def _is_immutable(value: Any) -> bool:
    kind = type(value)
    if kind is tuple:
        return all(map(_is_immutable, value))
    return type(kind) is type and kind in _IMMUTABLE


def _type_is(guard: values.TypeIs) -> _Lowered:
    lasts = any(guard.expected is kind for kind in (*_IMMUTABLE, tuple))
    return "type_is", WITH_VALUE if lasts else NEVER, guard.expected, 0


def _is_object(guard: values.IsObject) -> _Lowered:
    if guard.reference is not None:
        return "is_referent", WITH_VALUE, guard.reference, 0
    return "is_object", WITH_VALUE, guard.expected, 0


def _class_lookup(guard: definitions.ClassLookup) -> _Lowered:
    absent = guard.expected is definitions.ABSENT
    return "class_lookup", NEVER, (guard.name, guard.expected), 2 if absent else int(guard.only_type)


def _function_state(guard: definitions.FunctionState) -> _Lowered:
    state = (guard.code, guard.defaults, guard.keywords, definitions.OPEN)
    return "function_state", NEVER, state, 0


_LOWERED: dict[type, Callable[[Any], _Lowered]] = {
    values.TypeIs: _type_is,
    values.IsObject: _is_object,
    values.EqualsConstant: lambda guard: (
        *("equals", WITH_VALUE if _is_immutable(guard.expected) else NEVER, guard.expected, 0),
    ),
    values.Unreferenced: lambda guard: (
        *("unreferenced", NEVER, values.GuardReference, int(guard.plain_only)),
    ),
    containers.Length: lambda guard: ("length", WITH_DICT, None, guard.expected),
    containers.DictKeys: lambda guard: ("dict_keys", WITH_DICT, (tuple(guard.expected), guard.holds), 0),
    containers.KeyPresent: lambda guard: ("key_present", WITH_DICT, guard.name, 0),
    containers.KeyAbsent: lambda guard: ("key_absent", WITH_DICT, guard.name, 0),
    containers.DictEntries: lambda guard: ("dict_entries", WITH_DICT, guard.expected, 0),
    containers.AttributePresent: lambda guard: ("attr_present", NEVER, guard.name, 0),
    containers.AttributeAbsent: lambda guard: ("attr_absent", NEVER, guard.name, 0),
    definitions.ClassLookup: _class_lookup,
    definitions.ClassBases: lambda guard: ("class_bases", NEVER, guard.expected, 0),
    definitions.FunctionState: _function_state,
}
"""For each class of guards the native check, how long an answer lasts, and the check's operand and number."""


def value_check(index: int, guard: Guard) -> CheckTuple:
    """The check for a guard on one value."""
    lower = _LOWERED.get(type(guard))
    if lower is not None:
        op, lasting, operand, number = lower(guard)
        return (_C[op], lasting, index, operand, number, (), None)
    if _is_own(guard):
        match guard.kind:
            case "tensor_match":
                return (_C["tensor"], NEVER, index, None, 0, (), tensor_facts(guard))
            case "global_state":
                program = state_program(guard)
                if program is not None:
                    return (_C["state"], NEVER, index, None, 0, program, None)
    return (_C["python"], NEVER, index, guard.holds, 0, (), None)


def relation_check(index: int, guard: Guard, guards: GuardSet) -> CheckTuple:
    """The check for a guard on several values, which lie in slots."""
    slots = tuple([guards.node(source).slot for source in sources_of(guard)])
    if not _is_own(guard):
        return (_C["python_many"], NEVER, index, guard.holds, 0, slots, None)
    match guard:
        case relations.SameObject():
            return (_C["same"], NEVER, index, None, 0, slots, None)
        case relations.DistinctObjects():
            return (_C["distinct"], NEVER, index, None, 0, slots, None)
        case relations.ShapeRelations():
            program = shape_program(guard, slots)
            if program is not None:
                return (_C["shapes"], NEVER, index, guard.holds, len(slots), (*slots, *program), None)
    if guard.kind == "storage_groups":
        groups: tuple[int, ...] = guard.groups  # type: ignore[attr-defined]  # its class needs torch
        return (_C["storages"], NEVER, index, guard.holds, len(slots), (*slots, *groups), None)
    return (_C["python_many"], NEVER, index, guard.holds, 0, slots, None)


def shape_program(guard: relations.ShapeRelations, slots: tuple[int, ...]) -> tuple[int, ...] | None:
    """The stack program of a shape guard, or None if a number in it needs more than 64 bits."""
    slot_of: dict[Symbol, int] = {}
    code: list[int] = []
    for atom, slot in zip(guard.symbols, slots, strict=True):
        first = slot_of.setdefault(atom, slot)
        code += [_OPS["slot"], slot, _OPS["slot"], first, _OPS["=="], 0]
    checks: list[tuple[RelationOp, list[int], list[int]]] = []
    for atom, span in guard.ranges:
        value = [_OPS["slot"], slot_of[atom]]
        if span.low is not None:
            checks.append(("<=", [_OPS["const"], span.low], value))
        if span.high is not None:
            checks.append(("<=", value, [_OPS["const"], span.high]))
    for relation in guard.relations:
        checks.append(_relation_code(relation, slot_of))
    for op, lhs, rhs in checks:
        code += [*lhs, *rhs, _OPS[op], 0]
    if any(not -(2**63) <= number < 2**63 for number in code):
        return None
    return tuple(code)


def _relation_code(relation: Relation, slot_of: dict[Symbol, int]) -> tuple[RelationOp, list[int], list[int]]:
    return relation.op, _expression_code(relation.lhs, slot_of), _expression_code(relation.rhs, slot_of)


def _expression_code(value: IntLike, slot_of: dict[Symbol, int]) -> list[int]:
    if isinstance(value, int):
        return [_OPS["const"], value]
    code: list[int] = []
    for position, (monomial, coefficient) in enumerate(value.terms):
        code += [_OPS["const"], coefficient]
        for atom in monomial:
            code += _atom_code(atom, slot_of)
            code += [_OPS["*"], 0]
        if position:
            code += [_OPS["+"], 0]
    return code


def _atom_code(atom: Symbol | Apply, slot_of: dict[Symbol, int]) -> list[int]:
    if isinstance(atom, Symbol):
        return [_OPS["slot"], slot_of[atom]]
    lhs, rhs = (_expression_code(arg, slot_of) for arg in atom.args)
    return [*lhs, *rhs, _OPS[atom.function], 0]
