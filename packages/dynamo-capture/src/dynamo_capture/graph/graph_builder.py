"""The graph under construction: placeholders, nodes, symbols."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch.fx import Graph, GraphModule, Node

from dynamo_capture.foundation.break_kinds import AUTOGRAD_STATE, CONTENT_DECIDES, DATA_NUMBER, LEAVES_REGION
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.sources.sources import FloatTensorSource
from fx_interface.errors import UserLocation
from fx_interface.execution.rehearsal import shortened
from fx_interface.graph import LOCATION_KEY, materialize
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.signature import InputDecl, InputKind
from fx_interface.source import Source
from fx_interface.symbols import Expr, ShapeEnv, Symbol, symbol
from fx_interface.tensor_spec import SPEC_KEY, SymSpec, TensorSpec, ValueSpec
from fx_interface.torch_internals.graph_nodes import call_node
from fx_interface.torch_internals.graph_source import UnwrittenGraph, release_source, target_in_text
from fx_interface.torch_internals.modes import CHANGING

UNFOLLOWED = "a tensor that requires grad is computed with, which was made here, or whose data were replaced"


class WrittenTensor(Protocol):
    """What the graph asks of a tensor that an operation writes to. ``real``: the existing tensor that it is, if it is
    one; ``source``: where the program has that tensor."""

    node: Node
    real: torch.Tensor | None
    source: Source | None

    @property
    def memory(self) -> WrittenTensor:
        """The tensor whose memory it shares, or itself."""


@dataclass(slots=True, eq=False)
class GraphInput:
    """One placeholder: where its value is read, and its value in this call. ``followed``: whether the program has told
    autograd to follow it before the graph uses it, which is done before the graph runs."""

    node: Node
    kind: InputKind
    spec: ValueSpec
    source: Source
    example: Any
    followed: bool | None = None


class GraphOutput:
    """Owner of one graph. ``mutates``: some node may write into a tensor; ``leaves``: into one that it did not
    make itself; ``written``: those of its inputs; ``overwritten``: all tensors that were written to; ``draws``:
    one takes random numbers; ``checks``: a tensor's content is checked after the graph has run. ``assumes``:
    the frame is to run again where a check in the graph fails; ``may_fail``: what is in tensors may make an
    operator raise, ``fails_last`` the last one behind what lasts; ``lasts``: a tensor that it was given gets a history
    or another form, which only a backend that promises it takes back; ``fails_whole``: the compiled graph
    leaves nothing behind where it raises; ``speaks``: another process takes part in an operation, which can be neither
    undone nor repeated; ``in_transform``: transforms of ``torch.func`` are at work around it; ``indexes_by_tensors``: a
    tensor without dimensions is no number where it is an index, ``indexed``: tensors that are elements of others in
    some dimensions; ``is_watched``: asks whether the program has hooks on what autograd saves, which are called for an
    operation whether its result is used or not, ``saving`` are those; ``makes_leaf``: the program asks for gradients of
    a tensor that it made; ``duals``: dual ones; ``born``: where symbols from data are read; ``env``: what sizes are."""

    def __init__(self, env: ShapeEnv, is_watched: Callable[[], bool] = lambda: False) -> None:
        self.env = env
        self.is_watched = is_watched
        self.graph = Graph()
        self.inputs: list[GraphInput] = []
        self.unfollowed: set[Node] = set()
        self.duals: set[Node] = set()
        self.symbol_nodes: dict[Symbol, Node] = {}
        self.born: dict[Symbol, tuple[Node, int]] = {}
        self.mutates = self.checks = False
        self.leaves = False
        self.assumes = False
        self.may_fail = False
        self.fails_last: Node | None = None
        self.lasts = self.fails_whole = False
        self.speaks = self.makes_leaf = False
        self.in_transform = False
        self.indexes_by_tensors = False
        self.indexed: dict[Node, Any] = {}
        self._changed: list[Node] = []
        self.written: dict[Source, None] = {}
        self.overwritten: list[WrittenTensor] = []
        self.draws = False
        self.calls = 0
        self._first_call: Node | None = None
        self._floats: dict[Source, Node] = {}
        self._pure: set[Node] = set()
        self.saving: set[Node] = set()
        self._names: set[str] = set()
        self.bodies: dict[str, Any] = {}
        self.regions_named: Counter[tuple[str, ...]] = Counter()
        self.ended: dict[Graph, Any] = {}
        self.closing: list[Callable[[], None]] = []

    @property
    def is_repeatable(self) -> bool:
        """Whether running the graph leaves nothing behind."""
        return not (self.leaves or self.draws)

    def use(self, node: Node) -> Node:
        """The node of this graph that stands for ``node``, which may lie in a region's sub-graph that has ended."""
        if node.graph is self.graph and node in self.unfollowed and torch.is_grad_enabled():
            raise GraphBreak(AUTOGRAD_STATE, UNFOLLOWED)
        if node in self.duals:
            raise GraphBreak(AUTOGRAD_STATE, f"the dual tensor {node.name} has no part in an operation")
        return self.handed_out(node)

    def handed_out(self, node: Node) -> Node:
        """The same, of a tensor that the graph only returns."""
        if node.graph is self.graph:
            return node
        body = self.ended.get(node.graph)
        if body is None:
            raise GraphBreak(LEAVES_REGION, f"{node.name}, a tensor of a region that was given up, is used")
        exported: Node = body.export(node)
        return self.handed_out(exported)

    def assume(self, what: str) -> None:
        """The graph fails where something else than ``what`` holds: then the frame must be able to run again."""
        if self.lasts or (self.saving and self.is_watched()):
            raise GraphBreak(DATA_NUMBER, f"{what} decides, after the graph has changed something for good")
        self.assumes = self.may_fail = True

    def fail(self, node: Node, *, behind: bool) -> None:
        """What is in tensors may make ``node`` raise, ``behind`` a change for good or not."""
        self.may_fail = True
        if behind:
            self.fails_last = node

    def rehearsal(self, module: GraphModule) -> GraphModule | None:
        """What tells, run on copies, whether the graph is going to raise behind a change for good; None: nothing is to
        be found out, or can be."""
        return None if self.fails_last is None else shortened(module, self.fails_last, self._pure)

    def draw(self) -> None:
        """An operation takes random numbers."""
        self.draws = True

    def drawing(self) -> frozenset[Node]:
        """The calls that may take random numbers: none if the graph takes none."""
        impure = (node for node in self.graph.nodes if node.op.startswith("call") and node not in self._pure)
        return frozenset(impure) if self.draws else frozenset()

    def speak(self) -> None:
        """Another process takes part in an operation."""
        if self.assumes:
            raise GraphBreak(DATA_NUMBER, "another process takes part after a number from data has decided")
        self.speaks = self.leaves = self.lasts = True

    def write(self, written: Sequence[WrittenTensor], lasting: Sequence[WrittenTensor] = ()) -> None:
        """An operation changes the content of these tensors, and more than the content of those ``lasting``."""
        self.mutates = True
        self.overwritten += [tensor.memory for tensor in written]
        given = [tensor.memory for tensor in written if is_given(tensor.memory)]
        self._changed += [tensor.node for tensor in given]  # which may show other memory later
        self.leaves = self.leaves or not written or bool(given)
        self.lasts = self.lasts or not written or any(is_given(tensor.memory) for tensor in lasting)
        if self.assumes and self.lasts:
            raise GraphBreak(
                DATA_NUMBER, "something is changed for good after a number from data has decided"
            )
        for tensor in written:
            if tensor.memory.source is not None:
                self.written[tensor.memory.source] = None
        if self.checks and any(tensor.memory.real is not None for tensor in written):
            raise GraphBreak(
                CONTENT_DECIDES, "an existing tensor is written to after a check of a tensor's content"
            )

    @property
    def may_be_recorded(self) -> bool:
        """Whether autograd may record what is here without gradients: in a backward that is differentiated again."""
        return False

    @property
    def is_transformed(self) -> bool:
        """Whether it is inside of a function that a function transform is applied to."""
        return self.in_transform

    @property
    def changes_modes(self) -> bool:
        """Whether a node changes a mode of torch, here or in a region."""
        here = any(node.op == "call_function" and node.target in CHANGING for node in self.graph.nodes)
        return here or any(body.changes_modes for body in self.bodies.values())

    def placeholder(self, name: str, kind: InputKind, spec: ValueSpec, source: Source, example: Any) -> Node:
        """A new input, placed before every call."""
        node = self._place(name, spec)
        self.inputs.append(GraphInput(node, kind, spec, source, example))
        return node

    def changed_inputs(self) -> list[int] | None:
        """The positions of the inputs that are written to; None where others may be."""
        positions = {item.node: position for position, item in enumerate(self.inputs)}
        found = {positions.get(self.handed_out(node), -1) for node in self._changed}
        return None if self.speaks or -1 in found or (self.leaves and not found) else sorted(found)

    def rewritten_inputs(self) -> list[int]:
        """The positions of the inputs whose memory more than one operation writes to."""
        times = Counter(self.handed_out(node) for node in self._changed)
        return [position for position, item in enumerate(self.inputs) if times[item.node] > 1]

    def _place(self, name: str, spec: ValueSpec) -> Node:
        name = self._unique(name)
        if self._first_call is not None:
            with self.graph.inserting_before(self._first_call):
                node = self.graph.create_node("placeholder", name, (), {}, name)
        else:
            node = self.graph.create_node("placeholder", name, (), {}, name)
        if node.target != node.name:  # a call has it; the generated code calls the argument by its target
            node.target = node.name
        node.meta[SPEC_KEY] = spec
        return node

    def _unique(self, name: str) -> str:
        base, count = name, 1
        while name in self._names:
            name = f"{base}_{count}"
            count += 1
        self._names.add(name)
        return name

    def symbol(self, expr: Expr, source: Source, example: int) -> None:
        """The placeholder that passes a new symbol."""
        atom = expr.as_symbol
        assert atom is not None
        node = self.placeholder(atom.name, InputKind.SYMBOL, SymSpec(expr), source, example)
        self.symbol_nodes[atom] = node

    def float_input(self, source: Source, example: float, spec: TensorSpec) -> Node:
        """The placeholder of a float that is passed as a tensor without dimensions."""
        known = self._floats.get(source)
        if known is not None:
            return known
        passed = FloatTensorSource(source)
        name = "".join(c if c.isalnum() else "_" for c in source.expression).strip("_")
        name = f"float_{name}"[:40]
        value = torch.tensor(example, dtype=torch.float64)
        made = self._floats[source] = self.placeholder(name, InputKind.USER, spec, passed, value)
        return made

    def size(self, value: int | Expr) -> int | Node:
        """A size as a graph argument."""
        if isinstance(value, Expr):
            self.need(value)
            made = materialize(self.graph, value, self.symbol_nodes)
            if isinstance(made, Node) and made.op != "placeholder" and self._before_first_call(made):
                first = made
                # What it is computed from was placed before it.
                while first.prev.op not in ("placeholder", "root"):
                    first = first.prev
                self._first_call = first
            return made
        return value

    def need(self, value: Expr) -> None:
        """The graph is to have a node for every symbol of ``value``; one for each input it has."""
        for atom in value.symbols:
            if atom not in self.symbol_nodes:
                self.symbol_nodes[atom] = self._size_born(atom)

    def _size_born(self, atom: Symbol) -> Node:
        """The node that reads a size from data, right behind what has it."""
        if atom not in self.born:
            raise GraphBreak(DATA_NUMBER, f"the number {atom} is used outside of the part that makes it")
        tensor, dim = self.born[atom]
        with self.graph.inserting_after(tensor):
            node = self.graph.create_node("call_method", "size", (tensor, dim))
        node.meta[SPEC_KEY] = SymSpec(symbol(atom.name))
        self._pure.add(node)
        return node

    def _before_first_call(self, node: Node) -> bool:
        return self._first_call is None or node < self._first_call

    def call(
        self,
        op: str,
        target: str | Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        spec: ValueSpec,
        where: UserLocation | None,
        *,
        pure: bool,
        saves: bool = False,
    ) -> Node:
        """A new node at the end of the graph. ``saves``: autograd may save tensors for it, or read saved ones."""
        node = call_node(self.graph, op, target_in_text(target, args), args, kwargs)
        if self._first_call is None:
            self._first_call = node
        meta = node.meta
        meta[SPEC_KEY] = spec
        if where is not None:
            meta[LOCATION_KEY] = where
        if pure:
            self._pure.add(node)
        if saves:
            if self.assumes and self.is_watched():
                raise GraphBreak(DATA_NUMBER, "hooks on saved tensors are called after a number has decided")
            self.saving.add(node)
        self.calls += 1
        return node

    def keep(self, node: Node) -> None:
        """The node must run even if nothing uses it: it checks what the trace relies on."""
        self._pure.discard(node)

    def body(self, name: str, body: Any) -> Node:
        """A node for a region's sub-graph, the first argument(s) of the region's target."""
        name = self._unique(name)
        self.bodies[name] = body
        node = self.call("get_attr", name, (), {}, None, None, pure=True)
        del node.meta[SPEC_KEY]
        return node

    def module(self, results: Sequence[Any]) -> GraphModule:
        """The finished graph with the sub-graphs that it calls."""
        self.close(results)
        made = self._assemble(GraphModule if self.bodies else UnwrittenGraph)
        for part in made.modules():
            if part is not made:
                # A backward may run it in the middle of a compiled program: this frame is not the program's.
                type(part).forward.__globals__["__name__"] = __name__
        release_source(made)
        return made

    def _assemble(self, kind: type[GraphModule] = GraphModule) -> GraphModule:
        root = torch.nn.Module()
        for node in self.graph.find_nodes(op="get_attr"):
            root.add_module(str(node.target), self.bodies[str(node.target)].finished())
        return kind(root, self.graph)

    def close(self, results: Sequence[Any]) -> None:
        """No node is added from now on. What is inside closes first: what it does not use need not be passed."""
        for close in self.closing:
            close()
        self.graph.output(tuple(results))
        self.remove_unused()

    def remove_unused(self) -> None:
        """Erase what nothing uses and what has no effect: size arithmetic and pure operations."""
        for node in reversed(list(self.graph.nodes)):
            if not node.users and (node in self._pure or _is_size(node)):
                if node in self.saving and self.is_watched():
                    continue
                self.graph.erase_node(node)
        needed = self._symbols_in_specs()
        used: list[GraphInput] = []
        for item in self.inputs:
            if item.node.users or (item.kind is InputKind.SYMBOL and item.node in needed):
                used.append(item)
            else:
                self.graph.erase_node(item.node)
        order = {node: position for position, node in enumerate(self.graph.find_nodes(op="placeholder"))}
        self.inputs = sorted(used, key=lambda item: order[item.node])  # one may be placed before older ones

    def _symbols_in_specs(self) -> set[Node]:
        """Placeholders of the symbols that occur in a tensor's sizes or strides."""
        atoms: set[Symbol] = set()
        for node in self.graph.nodes:
            if self.symbol_nodes and node.op != "output":
                _add_symbols(node.meta.get(SPEC_KEY), atoms)
        for atom in [*atoms] if self.env.replacements else ():  # a graph may be read with what is known of it
            _add_symbols((self.env.simplify(symbol(atom.name)),), atoms)
        return {node for atom, node in self.symbol_nodes.items() if atom in atoms}

    def declarations(self) -> tuple[InputDecl, ...]:
        """The signature's inputs."""
        return tuple(InputDecl(i.node.name, i.kind, i.spec, i.source) for i in self.inputs)


def _add_symbols(spec: Any, atoms: set[Symbol]) -> None:
    if isinstance(spec, Expr):
        atoms.update(spec.symbols)
    elif isinstance(spec, TensorSpec):
        for number in (*spec.sizes, *spec.strides):
            if isinstance(number, Expr):
                atoms.update(number.symbols)
    elif isinstance(spec, (tuple, list)):
        for part in spec:
            _add_symbols(part, atoms)


def is_given(tensor: WrittenTensor) -> bool:
    """Whether a tensor, or what it is a view of, was there before the graph."""
    return tensor.real is not None or tensor.source is not None or tensor.node.op == "placeholder"


def _is_size(node: Node) -> bool:
    return node.op == "call_function" and isinstance(node.meta.get(SPEC_KEY), SymSpec)
