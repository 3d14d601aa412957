"""Splitting the joint recording into a forward and a backward graph, and writing the plan that joins them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch.fx import GraphModule

from aot_autograd.functionalization.sparse_gradients import gradient_behind, parts_behind
from aot_autograd.joint.backward_effects import opaque_sets
from aot_autograd.joint.backward_reads import needed_by, reading_regions, tangents_under
from aot_autograd.joint.joint import Joint
from aot_autograd.joint.recomputation import repeat_of
from aot_autograd.partition import Partitioner
from aot_autograd.plan import Apart, BackwardPlan, JointPlan, SavedInput, SavedOutput, SavedSource
from aot_autograd.recording.graphs import (
    Births,
    GraphInput,
    build_graph,
    calls_for_effect,
    calls_that_may_fail,
    live_values,
    random_calls,
    symbols_in,
)
from aot_autograd.recording.nan_masking import nan_from_zeros
from aot_autograd.recording.reads import computed_in_whole
from aot_autograd.recording.values import Value
from aot_autograd.views.aliasing import memory_root
from fx_interface.errors import UnsupportedProgramError
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.signature import InputKind, OutputDecl, OutputKind
from fx_interface.symbols import Expr, Symbol, symbol
from fx_interface.tensor_spec import SymSpec

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class TracedProgram:
    """A plan with its graphs, not yet compiled. ``backward`` is None in inference, and where there is no gradient."""

    plan: JointPlan
    forward: GraphModule
    backward: GraphModule | None


def split(joint: Joint, partition: Partitioner, apart: Apart, marked: tuple[int, ...] = ()) -> TracedProgram:
    """The forward and backward graphs of a joint recording, and its plan; ``marked`` is the plan's."""
    symbols = _symbol_positions(joint)
    born = Born(joint)
    backward_graph: GraphModule | None = None
    backward_plan: BackwardPlan | None = None
    saved: list[Value] = []
    if joint.gradients or joint.behind:
        backward_graph, backward_plan, saved = _backward(joint, partition, symbols, born)
    elif joint.tangents or joint.released:
        backward_plan = _without_gradients(joint)
    failing = calls_that_may_fail(joint.trace.recorder.values)
    forward, ignored = _forward(joint, saved, born, failing)
    plan = JointPlan(
        inputs=len(joint.declared),
        symbols=tuple((atom.name, position) for atom, position in symbols.items()),
        born=born.positions(len(saved)),
        recipes=tuple(joint.results.recipes),
        returned=joint.user_results,
        differentiable=() if backward_plan is None else _differentiable(joint),
        mutated=tuple(joint.mutated),
        constants=tuple(tensor for _, tensor in joint.trace.constants),
        apart=apart,
        no_grad=joint.training and backward_plan is None,
        owned=tuple(
            index
            for index, decl in enumerate(joint.declared)
            if decl.kind in (InputKind.PARAMETER, InputKind.BUFFER)
        ),
        repeat=repeat_of(joint),
        opens_grad=joint.training and not torch.is_grad_enabled(),
        forms=tuple(joint.forms),
        placed=joint.placed,
        marked=marked,
        functional_forms=tuple(sorted(joint.trace.functional_forms)),
        may_fail=bool(failing),
        ignored=ignored,
        versions=_versions(joint),
        versions_of_inputs=tuple(joint.versions_of_inputs.items()),
        backward=backward_plan,
        formed_views=tuple(sorted(joint.trace.formed_views)),
    )
    return TracedProgram(plan, forward, backward_graph)


def _without_gradients(joint: Joint) -> BackwardPlan:
    """The plan of results that require grad where each gradient is None."""
    return BackwardPlan(
        symbols=(),
        saved=(),
        tangents=(),
        gradient_of=(),
        gradient_from=(),
        depends=(),
        between=joint.between,
        leaves=joint.leaves,
        cut=joint.cut,
        released=joint.released,
        partly=joint.partly,
    )


def _differentiable(joint: Joint) -> tuple[int, ...]:
    """The results of the program that get a gradient from outside."""
    return tuple(
        index
        for index, result in enumerate(joint.results.graph[: joint.user_results])
        if result.tensor is not None and result.tensor.requires_grad and index not in joint.leaves
    )


def _versions(joint: Joint) -> tuple[tuple[int, int], ...]:
    """The results that the program has written to after it made them, with their versions."""
    results = joint.results.graph[: joint.user_results]
    return tuple(
        (index, result.tensor._version)
        for index, result in enumerate(results)
        if result.tensor is not None and not result.tensor.is_inference() and result.tensor._version
    )


class Born:
    """The symbols from data whose value somebody needs after the forward graph: each is one of its results.

    Those that views of results need are results already; the others come last.
    """

    def __init__(self, joint: Joint) -> None:
        self.calls = joint.trace.recorder.births
        self.given: dict[Symbol, int] = {}
        for index, result in enumerate(joint.results.graph):
            atom = result.value.as_symbol if isinstance(result.value, Expr) else None
            if atom is not None and atom in self.calls:
                self.given.setdefault(atom, index)
        self.known = len(joint.results.graph)
        self.extra: list[Symbol] = []

    @property
    def symbols(self) -> list[Symbol]:
        """All of them, in the plan's order."""
        return [*self.given, *self.extra]

    def need(self, atoms: Iterable[Symbol]) -> None:
        """Those of ``atoms`` that come from data are to be results."""
        for atom in sorted(atoms, key=lambda atom: atom.name):
            if atom in self.calls and atom not in self.given and atom not in self.extra:
                self.extra.append(atom)

    def positions(self, saved: int) -> tuple[tuple[str, int], ...]:
        """Name and result number of each; ``saved`` results stand before the last ones."""
        last = self.known + saved
        extra = [(atom.name, last + i) for i, atom in enumerate(self.extra)]
        return (*((atom.name, index) for atom, index in self.given.items()), *extra)


def _symbol_positions(joint: Joint) -> dict[Symbol, int]:
    found: dict[Symbol, int] = {}
    for position, decl in enumerate(joint.declared):
        if isinstance(decl.spec, SymSpec) and not isinstance(decl.spec.expr, int):
            atom = decl.spec.expr.as_symbol
            if atom is not None:
                found.setdefault(atom, position)
    return found


def _forward(joint: Joint, saved: list[Value], born: Born, failing: list[Value]) -> tuple[GraphModule, int]:
    """The graph, and how many of its last results nobody reads."""
    inputs = [
        GraphInput(value, decl.name, decl.kind, decl.spec if value is None else value.spec, decl.source)
        for decl, value in zip(joint.declared, joint.inputs, strict=True)
    ]
    inputs += [
        GraphInput(value, f"constant_{i}", InputKind.BUFFER, value.spec)
        for i, (value, _) in enumerate(joint.trace.constants)
    ]
    mutated = {m.graph_index: m.input_index for m in joint.mutated}
    results: list[tuple[Any, OutputDecl]] = []
    for index, result in enumerate(joint.results.graph):
        kind = OutputKind.MUTATED_INPUT if index in mutated else OutputKind.USER
        results.append((result.value, OutputDecl(kind, mutated.get(index))))
    results += [(value, OutputDecl(OutputKind.SAVED)) for value in saved]
    results += [(symbol(atom.name), OutputDecl(OutputKind.SAVED)) for atom in born.extra]
    recorder = joint.trace.recorder
    keep = calls_for_effect(recorder.values, backward=False)
    births = Births(recorder.births, joint.trace.env) if recorder.births else None
    bound = {given.value.number: given for given in inputs if given.value is not None}
    roots = [value for value, _ in results]
    unread = _unread(failing, [*roots, *keep], live_values(roots, bound, keep, births), bound)
    results += [(recorder.part(value), OutputDecl(OutputKind.SAVED)) for value in unread]
    return build_graph(inputs, results, joint.trace.env, keep, births), len(unread)


def _unread(
    failing: list[Value], roots: list[Any], live: list[Value], bound: Mapping[int, Any]
) -> list[Value]:
    """The calls that may fail, that return something, and of which neither the live calls nor another of these needs
    all."""
    found: list[Value] = []
    seen = computed_in_whole(failing, roots, live) if failing else set()
    for value in reversed(failing):
        if value.number not in seen and value.op._schema.returns:
            found.append(value)
            seen.update(needed.number for needed in live_values([value], bound))
    return found[::-1]


def _backward(
    joint: Joint, partition: Partitioner, symbols: dict[Symbol, int], born: Born
) -> tuple[GraphModule, BackwardPlan, list[Value]]:
    """The backward graph, its plan, and the values that the forward graph must return for it only."""
    trace = joint.trace
    pairs = _parts_of_gradients(joint)
    gradients = [value for _, value in pairs]
    keep = calls_for_effect(trace.recorder.values, backward=True)
    bound = _bound_values(joint, partition([*gradients, *keep], trace.env))
    live = live_values(gradients, bound, keep)
    check_partition(live)
    used = {operand.number: operand for value in live for operand in value.operands}
    used |= {value.number: value for value in gradients}
    crossing = [used[number] for number in sorted(used) if number in bound]
    kept = [v for v in crossing if not v.backward]
    tangents = [(v, t) for v, t in joint.tangents if v.number in used]
    atoms = symbols_in([*live, *kept, *(v for v, _ in tangents)], ())
    atoms |= symbols_in((), [trace.env.simplify(symbol(atom.name)) for atom in atoms])
    _check_births(live, trace.recorder.births)
    needed = sorted((atom for atom in atoms if atom in symbols), key=lambda atom: symbols[atom])
    sizes = [tangent.spec for _, tangent in tangents] + [value.spec for _, value in joint.behind]
    born.need(atoms | symbols_in((), sizes))
    numbers = [*symbols, *born.symbols]
    needed += [atom for atom in born.symbols if atom in atoms]
    saved, extra, bindings = _sources(joint, kept)
    inputs = [GraphInput(None, str(atom), InputKind.SYMBOL, SymSpec(symbol(atom.name))) for atom in needed]
    inputs += [
        GraphInput(value, f"saved_{i}", InputKind.SAVED, value.spec) for i, value in enumerate(bindings)
    ]
    inputs += [GraphInput(v, f"tangent_{i}", InputKind.TANGENT, v.spec) for i, (v, _) in enumerate(tangents)]
    results, origin = _gradient_results(pairs, inputs)
    graph = build_graph(inputs, results, trace.env, keep, backward=True)
    under = tangents_under(live, [value for value, _ in tangents])
    behind = tuple([gradient_behind(*pair, trace.behind, origin, under) for pair in joint.behind])
    plan = BackwardPlan(
        symbols=tuple(numbers.index(atom) for atom in needed),
        saved=tuple(saved),
        tangents=tuple(tangent for _, tangent in tangents),
        gradient_of=tuple(dict(pairs)),
        gradient_from=tuple(origin[value.number] for value in dict(pairs).values()),
        depends=tuple(tuple(sorted(below)) for below in _joined(pairs, under).values()),
        needed_by=needed_by(live, tangents, bindings) if len(tangents) > 1 else (),
        between=joint.between,
        leaves=joint.leaves,
        cut=joint.cut,
        released=joint.released,
        partly=joint.partly,
        nan_from_zeros=nan_from_zeros(live, under, len(tangents)),
        effects=opaque_sets(live, under) if len(tangents) > 1 else (),
        read=_read(joint, gradients),
        saving=joint.saving,
        reading=reading_regions(live, tangents, pairs),
        saved_specs=tuple(value.spec for value in bindings),
        behind=behind,
    )
    return graph, plan, extra


def _read(joint: Joint, gradients: list[Value]) -> tuple[int, ...]:
    """The program's results that the derivative formulas compute with, whatever the backward graph keeps of that."""
    whole = live_values(gradients, _bound_values(joint, ()))
    used = {operand.number for value in whole if value.backward for operand in value.operands}
    results = enumerate(joint.results.graph[: joint.user_results])
    return tuple(
        i for i, result in results if isinstance(result.value, Value) and result.value.number in used
    )


def _check_births(live: list[Value], births: Mapping[Symbol, Value]) -> None:
    """A size from data that only the backward makes is not given to it."""
    for value in births.values():
        if value.backward and value in live:
            raise UnsupportedProgramError(
                "AOT118", f"the size of {value.op}'s result, in a backward, depends on data"
            )


def _bound_values(joint: Joint, kept: Any) -> dict[int, Value]:
    bound = {value.number: value for value in kept}
    bound |= {value.number: value for value in joint.inputs if value is not None}
    bound |= {value.number: value for value, _ in joint.trace.constants}
    bound |= {value.number: value for value, _ in joint.tangents}
    return bound


def _sources(joint: Joint, kept: list[Value]) -> tuple[list[SavedSource], list[Value], list[Value]]:
    """Where each kept value is found when the backward runs, and the extra results of the forward graph.

    An input that the program overwrites, or gives another form, is kept as a copy made by the forward graph; so is what
    the caller may overwrite and the program has copied: eager may have kept the copy.
    """
    positions = {value.number: i for i, value in enumerate(joint.inputs) if value is not None}
    positions |= {value.number: len(joint.inputs) + i for i, (value, _) in enumerate(joint.trace.constants)}
    overwritten = {m.input_index for m in joint.mutated} | {form.input_index for form in joint.forms}
    results = {r.value.number: i for i, r in enumerate(joint.results.graph) if isinstance(r.value, Value)}
    copied = {memory_root(value).number for value in joint.trace.recorder.copied}
    copied -= {value.number for value, _ in joint.trace.constants}
    saved: list[SavedSource] = []
    extra: list[Value] = []
    for value in kept:
        position = positions.get(value.number)
        known_outside = position is not None or value.number in results
        apart = position in overwritten or memory_root(value).number in copied
        if known_outside and not apart:
            saved.append(SavedOutput(results[value.number]) if position is None else SavedInput(position))
        else:
            saved.append(SavedOutput(len(joint.results.graph) + len(extra)))
            again = joint.trace.recorder.call_again
            extra.append(again(aten.clone.default, (value,)) if known_outside else value)
    return saved, extra, kept


def _parts_of_gradients(joint: Joint) -> list[tuple[int, Value]]:
    """The values that the backward graph gives, each with the number of the input for whose gradient it does."""
    behind = joint.trace.behind
    return [
        *joint.gradients,
        *((index, part) for index, value in joint.behind for part in parts_behind(value, behind)),
    ]


def _joined(pairs: list[tuple[int, Value]], under: Mapping[int, frozenset[int]]) -> dict[int, frozenset[int]]:
    """The tangents that each input's gradient is computed from."""
    found: dict[int, frozenset[int]] = {}
    for index, value in pairs:
        found[index] = found.get(index, frozenset()) | under.get(value.number, frozenset())
    return found


def _gradient_results(
    pairs: list[tuple[int, Value]], inputs: list[GraphInput]
) -> tuple[list[tuple[Any, OutputDecl]], dict[int, int]]:
    """The backward graph's results, equal ones once, and where each value (by number) is found."""
    places = {given.value.number: -1 - i for i, given in enumerate(inputs) if given.value is not None}
    results: list[tuple[Any, OutputDecl]] = []
    for index, value in pairs:
        place = places.get(value.number)
        if place is None:
            place = places[value.number] = len(results)
            results.append((value, OutputDecl(OutputKind.GRADIENT, index)))
    return results, places


def check_partition(live: list[Value]) -> None:
    """Random numbers drawn in the forward are never drawn again: AOT115 if a partitioner asks for that."""
    for value in random_calls(live, backward=False):
        raise UnsupportedProgramError(
            "AOT115", f"the partitioner would draw {value.op} again in the backward"
        )
