"""The sub-graph of a region under construction.

Nothing is captured twice: a tensor or size of the surroundings that the region uses is *lifted*, that is, it becomes a
placeholder here and an argument of the call there; what was never read before becomes an input of the outermost graph
first. A tensor made here that is used outside, when the region has ended, becomes one of its results then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch.fx import GraphModule, Node

from dynamo_capture.foundation.break_kinds import DATA_NUMBER, LEAVES_REGION
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.graph.graph_builder import GraphOutput, WrittenTensor
from fx_interface.signature import DIALECT_KEY, InputKind
from fx_interface.source import Source
from fx_interface.symbols import Expr, symbol
from fx_interface.tensor_spec import SPEC_KEY, TensorSpec, ValueSpec


class Body(GraphOutput):
    """A sub-graph. ``lifted``: nodes of the parent and the placeholders that stand for them; ``results`` are
    returned; ``outside`` are tensors of the surroundings that it writes to; ``pinned`` are nodes of the parent that
    stay arguments even if they are not used, ``seen`` those that do where the program has hooks on saved tensors;
    ``once``: what is inside must not be differentiated as it stands; ``derives``: the function whose backward it is;
    ``asks_modes``: a mode of the program is asked about what torch itself does around the part;
    ``is_mapped``: its parameters are slices of a ``vmap``;
    ``may_dispatch``: whether operations inside may be taken apart, which autograd at most sees as other regions."""

    asks_modes = False
    is_mapped = False
    derives: type | None = None

    def __init__(self, parent: GraphOutput, what: str, may_dispatch: bool = False) -> None:
        super().__init__(parent.env, parent.is_watched)
        self.may_dispatch = may_dispatch
        self.parent = parent
        self.what = what
        self.lifted: dict[Node, Node] = {}
        self.parameters: list[Node] = []
        self.results: list[Any] = []
        self.outside: list[WrittenTensor] = []
        self.exporter: Callable[[Node], Node] | None = None
        self.pinned: set[Node] = set()
        self.seen: set[Node] = set()
        self.once = False
        self.indexes_by_tensors = parent.indexes_by_tensors

    @property
    def may_be_recorded(self) -> bool:
        return (self.derives is not None and not self.once) or self.parent.may_be_recorded

    @property
    def is_transformed(self) -> bool:
        return self.parent.is_transformed

    def parameter(self, name: str, spec: ValueSpec) -> Node:
        """A placeholder that the region's target fills itself; those stand before what is lifted."""
        assert not self.lifted, "parameters come before anything is lifted"
        made = self._place(name, spec)
        self.parameters.append(made)
        return made

    def copied(self, parameter: Node) -> Node:
        """A copy of what a parameter holds at the beginning, which takes its place everywhere."""
        assert self._first_call is not None
        with self.graph.inserting_before(self._first_call):
            made = self.graph.create_node("call_method", "clone", (parameter,))
        made.meta[SPEC_KEY] = parameter.meta[SPEC_KEY]
        self._pure.add(made)
        self._first_call = made
        parameter.replace_all_uses_with(made, lambda user: user is not made)
        return made

    def use(self, node: Node) -> Node:
        if node.graph is self.graph:
            return node
        if node.graph in self.ended:
            return super().use(node)
        outer = self.parent.use(node)
        found = self.lifted.get(outer)
        if found is None:
            found = self.lifted[outer] = self._place(outer.name, outer.meta.get(SPEC_KEY))
        return found

    def lift_first(self, nodes: Sequence[Node]) -> None:
        """The placeholders of these lifted nodes come first, in this order: hooks on what is saved see them in it."""
        for node in reversed(nodes):
            place = self.lifted[self.parent.use(node)]
            if self.parameters:
                self.parameters[-1].append(place)
            else:
                next(iter(self.graph.nodes)).prepend(place)

    def export(self, node: Node) -> Node:
        """The node of the parent that stands for ``node``, after the region has ended."""
        if self.exporter is None:
            raise GraphBreak(LEAVES_REGION, f"a tensor made inside {self.what} is used outside of it")
        return self.exporter(node)

    def assume(self, what: str) -> None:
        raise GraphBreak(DATA_NUMBER, f"{what} decides in {self.what}")

    def write(self, written: Sequence[WrittenTensor], lasting: Sequence[WrittenTensor] = ()) -> None:
        super().write(written, lasting)
        for tensor in written:
            if tensor.memory.node.graph is not self.graph and tensor.memory.node.graph not in self.ended:
                self.outside.append(tensor.memory)

    def end(self) -> None:
        """From now on the parent may use what is inside."""
        self.parent.ended[self.graph] = self
        self.parent.ended.update(dict.fromkeys(self.ended, self))
        self.parent.draws = self.parent.draws or self.draws
        self.parent.may_fail = self.parent.may_fail or self.may_fail
        self.parent.lasts = self.parent.lasts or self.lasts
        if self.outside:
            self.parent.write(self.outside)

    def finished(self) -> GraphModule:
        """The sub-graph as a module; ``close`` has been called."""
        made = self._assemble()
        made.meta[DIALECT_KEY] = "torch"
        return made

    def remove_unused(self) -> None:
        super().remove_unused()
        for outer, place in list(self.lifted.items()):
            if place.users or outer in self.pinned or (outer in self.seen and self.is_watched()):
                continue
            self.graph.erase_node(place)
            del self.lifted[outer]
        order = {node: position for position, node in enumerate(self.graph.find_nodes(op="placeholder"))}
        self.lifted = dict(sorted(self.lifted.items(), key=lambda item: order[item[1]]))

    def need(self, value: Expr) -> None:
        for atom in value.symbols:
            if atom in self.symbol_nodes:
                continue
            if atom in self.born:
                self.symbol_nodes[atom] = self._size_born(atom)
                continue
            self.parent.need(symbol(atom.name))
            self.symbol_nodes[atom] = self.use(self.parent.symbol_nodes[atom])

    def placeholder(self, name: str, kind: InputKind, spec: ValueSpec, source: Source, example: Any) -> Node:
        return self.parent.placeholder(name, kind, spec, source, example)

    def symbol(self, expr: Expr, source: Source, example: int) -> None:
        self.parent.symbol(expr, source, example)

    def float_input(self, source: Source, example: float, spec: TensorSpec) -> Node:
        return self.parent.float_input(source, example, spec)
