"""The contract of an export: leaves, symbols and relations, and what the graph is called with.

The form is that of ``csrc/core/contract.h`` of the loader.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import torch

from fx_guards.kinds.tensor import TensorMatch
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.signature import InputKind
from fx_interface.symbols import Apply, Expr, IntLike, Symbol
from fx_interface.tensor_spec import SymSpec, TensorSpec, spec_of
from fxstack.artifacts.dynamic_shapes import SMALLEST
from fxstack.artifacts.errors import ExportError
from fxstack.artifacts.exporting import Exported
from fxstack.artifacts.relied_on import is_of_argument, symbols_of_sizes
from fxstack_artifact.program.sizes import ADD, FLOORDIV, MAX, MIN, MOD, MUL, NUMBER, SYMBOL
from inductor_codegen.runtime import GraphRecord, device_numbers, scalar_type

_FUNCTIONS = {"floordiv": FLOORDIV, "mod": MOD, "min": MIN, "max": MAX}
_RELATIONS = {"==": 0, "!=": 1, "<": 2, "<=": 3}
_TENSOR, _INTEGER, _ANYTHING = 0, 1, 3
_LEAF, _CONSTANT, _SYMBOL, _NOTHING = 0, 1, 2, 3
_RESULTS = {"t": 0, "i": 1, "f": 2, "n": 3}


@dataclass(slots=True)
class Contract:
    """``inputs``: for each input of the captured graph the kind of what it is (leaf, constant, symbol) and its number.
    ``constants`` are those of the graph, in the order of their numbers. ``symbols``: (leaf, dimension, low, high)."""

    symbols: dict[Symbol, tuple[int, int, int, int]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    leaves: list[TensorSpec | None] = field(default_factory=list)
    relations: list[tuple[str, IntLike, IntLike]] = field(default_factory=list)
    inputs: list[tuple[int, int]] = field(default_factory=list)
    constants: list[torch.Tensor] = field(default_factory=list)
    integers: frozenset[int] = frozenset()
    """The leaves that are integers: sizes that arguments give as numbers."""

    @property
    def is_on_gpu(self) -> bool:
        """Whether an input of the graph is on a GPU."""
        numbers = {number for of, number in self.inputs if of == _LEAF}
        specs = (spec for number, spec in enumerate(self.leaves) if number in numbers)
        devices = [
            *(spec.device for spec in specs if spec is not None),
            *(one.device for one in self.constants),
        ]
        return any(device.type == "cuda" for device in devices)

    def expression(self, value: IntLike) -> list[int]:
        """An integer in postfix. ExportError FXS505 for a symbol that no size of an argument gives."""
        if isinstance(value, int):
            return [NUMBER, value]
        words: list[int] = []
        for number, (monomial, coefficient) in enumerate(value.terms):
            words += [NUMBER, coefficient]
            for atom in monomial:
                words += [*self._atom(atom), MUL]
            words += [ADD] if number else []
        return words

    def _atom(self, atom: Symbol | Apply) -> list[int]:
        if isinstance(atom, Apply):
            lhs, rhs = atom.args
            return [*self.expression(lhs), *self.expression(rhs), _FUNCTIONS[atom.function]]
        if atom not in self.symbols:
            raise ExportError(
                "FXS505",
                f"the graph depends on {atom}, which is not a size of an argument",
                action="sizes that come from data, and numbers that vary, cannot be part of a contract",
            )
        return [SYMBOL, list(self.symbols).index(atom)]

    def words(self, record: GraphRecord, writes: Sequence[tuple[int, int, int]]) -> list[int]:
        """The array that the loader reads."""
        words = [1, len(self.symbols)]
        for source in self.symbols.values():
            words += source
        words.append(len(self.leaves))
        for number, spec in enumerate(self.leaves):
            is_integer = number in self.integers
            words += [_INTEGER] if is_integer else [_ANYTHING] if spec is None else self.tensor(spec)
        words.append(len(self.relations))
        for op, lhs, rhs in self.relations:
            words += [_RELATIONS[op], *self._counted(lhs), *self._counted(rhs)]
        kinds = [*record.input_kinds]
        words.append(len(kinds))
        for kind, (of, number) in zip(kinds, self.inputs, strict=True):
            if number < 0 and kind != "u":
                raise ExportError("FXS505", "the graph depends on a number that is not a size of an argument")
            words += [_NOTHING, 0] if kind == "u" else [of, number]
        words.append(len(record.output_kinds))
        words += [_RESULTS[kind] for kind in record.output_kinds]
        words.append(len(writes))
        for write in writes:
            words += write
        return [*words, len(self.constants)]

    def tensor(self, spec: TensorSpec) -> list[int]:
        words = [_TENSOR, scalar_type(spec.dtype), device_numbers(spec.device)[0], spec.rank]
        for value in (*spec.sizes, *spec.strides):
            words += self._counted(value)
        return words

    def _counted(self, value: IntLike) -> list[int]:
        words = self.expression(value)
        return [len(words), *words]


def contract_of(exported: Exported) -> Contract:
    """The contract of an export. ExportError FXS505 or FXS506 where there is none."""
    sized = exported.arguments.sized
    contract = Contract(
        integers=frozenset(i for i, name in enumerate(exported.arguments.names) if name in sized)
    )
    leaves = {id(leaf): number for number, leaf in enumerate(exported.arguments.leaves)}
    specs: dict[int, TensorSpec] = {}
    constants: dict[int, int] = {}
    _symbols(exported, contract)
    numbers = {symbol: number for number, symbol in enumerate(contract.symbols)}
    for declared, example in zip(exported.signature.inputs, exported.example_inputs, strict=True):
        if declared.kind is InputKind.SYMBOL:
            assert isinstance(declared.spec, SymSpec)
            assert isinstance(declared.spec.expr, Expr)
            atom = declared.spec.expr.as_symbol
            contract.inputs.append((_SYMBOL, -1 if atom is None else numbers.get(atom, -1)))
        elif not isinstance(example, torch.Tensor):
            raise ExportError("FXS502", f"the graph takes a {type(example).__name__} ({declared.source})")
        elif id(example) in leaves:
            assert isinstance(declared.spec, TensorSpec)
            specs[leaves[id(example)]] = declared.spec
            contract.inputs.append((_LEAF, leaves[id(example)]))
        else:
            contract.inputs.append((_CONSTANT, constants.setdefault(id(example), len(constants))))
            if constants[id(example)] == len(contract.constants):
                contract.constants.append(example)
    for tensor in exported.graphs.plan.constants:
        contract.inputs.append((_CONSTANT, len(contract.constants)))
        contract.constants.append(tensor)
    looked_at = _looked_at(exported)
    for number, leaf in enumerate(exported.arguments.leaves):
        spec = specs.get(number)
        if number in contract.integers and spec is not None:
            raise ExportError("FXS505", f"the graph takes {exported.arguments.names[number]} as a tensor")
        if spec is None and number not in contract.integers and id(leaf) in looked_at:
            spec = _shape_only(contract, number, spec_of(leaf))
        contract.leaves.append(spec)
    _relations(exported, contract)
    return contract


def _symbols(exported: Exported, contract: Contract) -> None:
    env = exported.env
    for (number, dim), atom in symbols_of_sizes(exported.arguments, env).items():
        known = env.symbols[atom].range
        low = SMALLEST if known.low is None else known.low
        place = -1 if number in contract.integers else dim
        contract.symbols[atom] = (number, place, low, -1 if known.high is None else known.high)
        chosen = exported.varying.get((number, dim))
        contract.names.append(atom.name if chosen is None else chosen.name)


def _looked_at(exported: Exported) -> frozenset[int]:
    """The leaves, by identity, of which guards ask something: nothing is asked of others."""
    roots = exported.arguments.scope
    found = (guard.source for guard in exported.guards if isinstance(guard, TensorMatch))
    return frozenset(id(source.fetch(roots)) for source in found if is_of_argument(source))


def _shape_only(contract: Contract, number: int, spec: TensorSpec) -> TensorSpec:
    """The spec of a leaf that the graph does not take."""
    dims = {dim: atom for atom, (leaf, dim, _, _) in contract.symbols.items() if leaf == number}
    if not dims:
        return spec
    sizes: list[IntLike] = [
        Expr((((dims[d],), 1),)) if d in dims else size for d, size in enumerate(spec.sizes)
    ]
    return TensorSpec(tuple(sizes), _strides_like(sizes, spec), spec.dtype, spec.device)


def _strides_like(sizes: Sequence[IntLike], spec: TensorSpec) -> tuple[IntLike, ...]:
    """Strides of the same order: products of the sizes that are nearer in memory."""
    strides: list[IntLike] = list(spec.strides)
    running: IntLike = 1
    for d in sorted(range(spec.rank), key=lambda d: (spec.strides[d], -d)):
        strides[d] = running
        running = running * sizes[d]
    return tuple(strides)


def _relations(exported: Exported, contract: Contract) -> None:
    """What compiling relied on, and that sizes of one name are one."""
    known = contract.symbols.keys()
    for guard in exported.env.guards:
        if guard.relation.symbols <= known:
            contract.relations.append((guard.relation.op, guard.relation.lhs, guard.relation.rhs))
    first: dict[str, Symbol] = {}
    for atom, name in zip(contract.symbols, contract.names, strict=True):
        other = first.setdefault(name, atom)
        if other is not atom:
            contract.relations.append(("==", Expr((((other,), 1),)), Expr((((atom,), 1),))))
