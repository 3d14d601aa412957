"""Compiling a program in parts: what lies between branches and loops, and what is inside of each.

    a = x.sin(); b = conditional(true, false, p, a); return b + a
    ->  part 1: a = x.sin()    then true or false, each a program of its own    then part 2: b + a

Each part is compiled as if it were the program, forward and backward. Autograd joins them when they run: a branch that
is not taken computes nothing, neither forward nor backward.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import torch
from torch.fx import GraphModule, Node

from aot_autograd.control_flow.cut import Cutter, is_size, symbol_of
from aot_autograd.control_flow.data_sizes import example_number, symbols_in, told_by
from aot_autograd.control_flow.driver import Slot, Step, driver
from aot_autograd.control_flow.examples import example_of
from aot_autograd.control_flow.flags import requires_grad_after
from aot_autograd.control_flow.parts import has_parts, is_cut
from aot_autograd.plan import JointPlan
from fx_interface.backend import CompiledGraph
from fx_interface.graph import outputs, placeholders
from fx_interface.regions import bodies_of, checkpointed, conditional, loop, scan
from fx_interface.signature import SHAPE_ENV_KEY, InputDecl, signature_of
from fx_interface.symbols import ShapeEnv, Symbol
from fx_interface.tensor_spec import SPEC_KEY, is_differentiable
from fx_interface.torch_internals.modes import BLOCKS, CHANGING, restored

PartCompiler: TypeAlias = Callable[[GraphModule, Sequence[Any]], tuple[CompiledGraph, JointPlan]]
"""What compiles one part, given inputs of its form."""


def compile_in_parts(
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
    compile_part: PartCompiler,
    cuts: Collection[Node] = (),
) -> CompiledGraph:
    """The callable for a program with branches and loops; each part is compiled now. At ``cuts`` others begin, too.

    UnsupportedProgramError for what the caller must run as it is.
    """
    places = placeholders(graph_module.graph)
    env = graph_module.meta.get(SHAPE_ENV_KEY)
    values = {atom: i for i, node in enumerate(places) if (atom := symbol_of(node)) is not None}
    whole = _Whole(compile_part, env)
    symbols = {atom: example_inputs[i] for atom, i in values.items()}
    flags = [isinstance(value, torch.Tensor) and value.requires_grad for value in example_inputs]
    with restored():
        run, _ = _Walk(whole, graph_module, list(example_inputs), flags, symbols, cuts).compiled()
    positions = tuple(values.values())

    def program(*inputs: Any) -> Sequence[Any]:
        return run(*inputs, *[inputs[position] for position in positions])

    return program if positions else run


class _Whole:
    """What all parts of one program share."""

    def __init__(self, compile_part: PartCompiler, env: ShapeEnv | None) -> None:
        self.compile_part = compile_part
        self.env = env


class _Walk:
    """One graph, the program's or a sub-graph's, on its way to steps. ``symbols`` are those that it may use, with a
    value of each: each part, and each sub-graph, gets their values behind its own inputs. Sizes from data that a part
    gives are symbols for what comes after it."""

    def __init__(
        self,
        whole: _Whole,
        graph_module: GraphModule,
        examples: Sequence[Any],
        flags: Sequence[bool],
        symbols: Mapping[Symbol, int],
        cuts: Collection[Node] = (),
    ) -> None:
        self._whole = whole
        self._cuts = cuts
        self._module = graph_module
        places = placeholders(graph_module.graph)
        self._flags: dict[Node, bool] = dict(zip(places, flags, strict=True))
        self._examples = dict(zip(places, examples, strict=True))
        self._slots: dict[Node, Slot] = {node: Slot(i) for i, node in enumerate(places)}
        self._values = dict(symbols)
        self._symbols = [Slot(len(places) + i) for i in range(len(symbols))]
        self._size = self._inputs = len(places) + len(symbols)
        self._steps: list[Step] = []
        self._entered: dict[Node, Any] = {}
        signature = signature_of(graph_module)
        declared = () if signature is None else signature.inputs
        self._declared: dict[Node, InputDecl] = dict(zip(places, declared, strict=False))

    def compiled(self) -> tuple[CompiledGraph, list[bool]]:
        """The callable, and whether each result requires grad."""
        in_parts = has_parts(self._module)
        pending: list[Node] = []
        try:
            for node in self._module.graph.nodes:
                if node.op in ("placeholder", "get_attr", "output"):
                    continue
                if node in self._cuts:
                    self._part(pending)
                    pending = []
                if is_cut(node, self._module) or (in_parts and node.target in CHANGING):
                    self._part(pending)
                    pending = []
                    self._between(node)
                elif not _picks(node, self._module):
                    pending.append(node)
            self._part(pending)
        finally:
            for node, token in reversed(self._entered.items()):
                BLOCKS[node.target](token)  # type: ignore[index]
        results = outputs(self._module.graph)
        made = tuple(self._slots[value] if isinstance(value, Node) else value for value in results)
        flags = [isinstance(value, Node) and self._flags.get(value, False) for value in results]
        return driver(self._inputs, self._steps, made), flags

    def _slot(self, node: Node) -> Slot:
        made = self._slots[node] = Slot(self._size)
        self._size += 1
        return made

    def _part(self, nodes: list[Node]) -> None:
        """A step for what lies between two others."""
        own = set(nodes)
        results = [
            node for node in nodes if any(_needs(user, node) for user in node.users if user not in own)
        ]
        if all(is_size(node) for node in nodes) and not results:
            return
        results += self._binding(nodes, results)
        cutter = Cutter(self._module, list(self._values), self._declared, self._whole.env)
        part = cutter.cut(nodes, results)
        flags = [self._flags.get(node, False) for node in part.inputs]
        examples = [
            self._examples[node] if node in self._examples else self._example(node, flag)
            for node, flag in zip(part.inputs, flags, strict=True)
        ]
        given = [*examples, *self._values.values()]
        run, plan = self._whole.compile_part(part.graph_module, given)
        after = requires_grad_after(plan, [*flags, *[False] * len(self._values)])
        for node, flag in zip(part.inputs, after.inputs, strict=False):
            self._flags[node] = flag
        self._flags.update(zip(results, after.results, strict=True))
        arguments = tuple(self._slots[node] for node in part.inputs)
        self._steps.append(Step(run, (*arguments, *self._symbols), tuple(map(self._slot, results))))
        self._bind(results)

    def _example(self, node: Node, flag: bool) -> Any:
        return example_of(node.meta[SPEC_KEY], flag, self._values)

    def _binding(self, nodes: Sequence[Node], results: Sequence[Node]) -> list[Node]:
        """Further results, which tell the sizes from data that these have."""
        lacking = {atom for node in results for atom in symbols_in(node)} - self._values.keys()
        lacking -= {atom for node in results for atom in told_by(node).values()}
        found = []
        for node in nodes:
            told = lacking.intersection(told_by(node).values())
            if told:
                found.append(node)
                lacking -= told
        return found

    def _bind(self, results: Sequence[Node]) -> None:
        """Make symbols of the sizes from data that these results tell."""
        for node in results:
            for dim, atom in told_by(node).items():
                if atom in self._values:
                    continue
                slot = self._slots[node]
                if dim is not None:
                    slot, of = Slot(self._size), slot
                    self._size += 1
                    self._steps.append(Step(partial(_size_of, dim), (of,), (slot,)))
                self._symbols.append(slot)
                self._values[atom] = example_number(self._whole.env, atom)

    def _between(self, node: Node) -> None:
        if not is_cut(node, self._module):
            self._mode(node)
            return
        bodies = list(bodies_of(node, self._module))
        args = node.args[len(bodies) :]
        given = [self._flags.get(arg, False) if isinstance(arg, Node) else False for arg in args]
        run, after = self._region(node, bodies, given)
        used = {user.args[1]: user for user in node.users}
        specs = node.meta[SPEC_KEY]
        for place, user in used.items():
            spec = user.meta[SPEC_KEY]
            trained = after[place] if after else torch.is_grad_enabled() and any(given)  # type: ignore[index]
            self._flags[user] = trained and is_differentiable(spec.dtype)
        results = tuple(self._slot(used[i]) if i in used else None for i in range(len(specs)))
        arguments = tuple(self._slots[arg] if isinstance(arg, Node) else arg for arg in args)
        self._steps.append(Step(run, (*arguments, *self._symbols), results))
        self._bind(list(used.values()))

    def _region(self, node: Node, bodies: list[GraphModule], given: list[bool]) -> tuple[Any, list[bool]]:
        """What runs the region, and which results require grad; nothing where all do if any argument does."""
        options = dict(node.kwargs)
        if node.target is conditional:
            trained = torch.is_grad_enabled() and any(given)
            return self._conditional(bodies, given, options, trained), []
        if node.target is loop:
            return self._loop(bodies, given, options), []
        if node.target is scan:
            return self._scan(bodies[0], given, options), []
        body, after = self._sub_graph(bodies[0], given)
        return self._with_symbols(checkpointed, (body,), options), after

    def _mode(self, node: Node) -> None:
        """A step that changes a mode, now too, so that what follows is compiled in it."""
        run: Any = node.target
        args = tuple(self._entered.pop(a) if isinstance(a, Node) else a for a in node.args)
        token = run(*args)
        results: tuple[Slot | None, ...] = (None,)
        if run in BLOCKS:
            self._entered[node] = token
            results = (self._slot(node),)
        arguments = tuple(self._slots[a] if isinstance(a, Node) else a for a in node.args)
        self._steps.append(Step(lambda *given: (run(*given),), arguments, results))

    def _conditional(
        self, bodies: list[GraphModule], given: list[bool], options: dict[str, Any], trained: bool
    ) -> Any:
        chosen = options["true_args"], options["false_args"]
        on_true, on_false = (
            self._sub_graph(body, [given[1 + i] for i in positions])[0]
            for body, positions in zip(bodies, chosen, strict=True)
        )
        if trained or self._symbols:
            return self._with_symbols(conditional, (on_true, on_false), options)
        for_true, for_false = (tuple(positions) for positions in chosen)

        def run(condition: torch.Tensor, *args: Any) -> Sequence[Any]:
            """As the region does, but for gradients, which there are none of."""
            body, positions = (on_true, for_true) if condition else (on_false, for_false)
            return body(*[args[position] for position in positions])

        return run

    def _loop(self, bodies: list[GraphModule], given: list[bool], options: dict[str, Any]) -> Any:
        """A loop; what is carried may come to require grad in a round, and does for all that is compiled then."""
        carried, others = given[: options["carried"]], given[options["carried"] :]
        while True:
            body, after = self._sub_graph(bodies[1], [*carried, *(others[i] for i in options["body_args"])])
            grown = [one or other for one, other in zip(carried, after, strict=True)]
            if grown == carried:
                break
            carried = grown
        asked = [*carried, *(others[i] for i in options["condition_args"])]
        return self._with_symbols(loop, (self._sub_graph(bodies[0], asked)[0], body), options)

    def _scan(self, body: GraphModule, given: list[bool], options: dict[str, Any]) -> Any:
        """A body that is called for each slice; what is carried may come to require grad, as in a loop."""
        carried, others = given[: options["carried"]], given[options["carried"] :]
        while True:
            compiled, after = self._sub_graph(body, [*carried, *others])
            grown = [one or other for one, other in zip(carried, after, strict=False)]
            if grown == carried:
                break
            carried = grown
        return self._with_symbols(scan, (compiled,), options)

    def _sub_graph(self, body: GraphModule, flags: list[bool]) -> tuple[CompiledGraph, list[bool]]:
        places = placeholders(body.graph)
        examples = [
            None if symbol_of(node) is not None else self._example(node, flag)
            for node, flag in zip(places, flags, strict=True)
        ]
        return _Walk(self._whole, body, examples, flags, self._values).compiled()

    def _with_symbols(self, target: Any, bodies: tuple[CompiledGraph, ...], options: dict[str, Any]) -> Any:
        """The region's own target, on compiled sub-graphs."""
        count = len(self._symbols)
        if not count:
            return lambda *args: target(*bodies, *args, **options)

        def run(*args: Any) -> Any:
            rest, symbols = args[:-count], args[-count:]
            bound = [lambda *given, body=body: body(*given, *symbols) for body in bodies]
            return target(*bound, *rest, **options)

        return run


def _size_of(dim: int, tensor: torch.Tensor) -> tuple[int]:
    return (tensor.shape[dim],)


def _picks(node: Node, owner: GraphModule) -> bool:
    """Whether a node takes a result out of a region at which the program is cut."""
    region = node.args[0] if node.target is operator.getitem else None
    return isinstance(region, Node) and is_cut(region, owner)


def _needs(user: Node, node: Node) -> bool:
    """Whether a later node needs a value handed on: sizes are computed again, but for results of the program."""
    return user.op == "output" or not is_size(node)
