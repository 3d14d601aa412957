"""Backwards of chosen tensors (``torch.autograd.grad``, ``backward(inputs=...)``), which run only what leads to those.

Autograd's engine decides for each node whether it leads to a chosen tensor. A compiled function is one node, which
leads to all its inputs:

    a, b = compiled(x, y)                  # a depends on x alone, b on y alone
    torch.autograd.grad(a.sum() + b.sum(), x)

In eager nothing runs here that lies before ``b``: no hook on it, no effect of its backward. The engine runs the
compiled node, for ``x``, with both gradients. So the node asks the engine about what each result leads to, and what
eager would not reach counts as not arrived. Which tensors were chosen the engine does not tell; the call in Python
that started the backward does, where it is in the same thread.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from types import FrameType
from typing import Any, Final, NamedTuple, TypeAlias

import torch
from torch.autograd import graph as _graph

_will_execute = torch._C._will_engine_execute_node
_current_task = torch._C._current_graph_task_id
_runs_all: Callable[[], bool] = torch.autograd.Variable._execution_engine.is_checkpoint_valid
"""Asked while a node runs: whether its backward runs all nodes that it comes to, as a checkpoint needs it."""
_RUNS: Final = getattr(getattr(_graph, "_engine_run_backward", None), "__code__", None)
_BELOW_REACHED: Final = 2
"""Calls that did not start the backward in which ``Reach.reached`` asks: the one it makes, and itself."""
_INPUTS: Final = 3
"""Where, among what the engine is given beside the tensors to differentiate, the chosen tensors are."""
_Leaf: Final = torch._C._functions.AccumulateGrad  # type: ignore[attr-defined]  # not in the stubs
_PASSING: Final = frozenset({"_BetweenBackward", "_SpreadBackward", "_DeliveryBackward"})
"""Nodes around a compiled function's node, each of which leads where its next ones do."""


class Edge(NamedTuple):
    """A node, and which of its outputs."""

    node: Any
    place: int


_Known: TypeAlias = MutableMapping[Any, dict[int, bool]]


class _Told(threading.local):
    """What has been told in the backward that runs in this thread, ``task``."""

    task: int | None = None
    known: _Known | None = None
    leaves: frozenset[int] | None = None


_told = _Told()


def chooses() -> bool:
    """Whether the backward that runs is one of chosen tensors; asked by a node that runs."""
    return not _runs_all()


def leads_on(node: Any, place: int) -> bool:
    """Whether a chosen tensor lies behind this output of a node, or is it."""
    if not _is_ours(node):
        return _engine_runs(node)
    known = _known_of_this_backward()
    pending = [Edge(node, place)]
    while pending:
        edge = pending[-1]
        found, further = _at_once(edge, known)
        if found is None and further is not None:
            pending.append(further)
            continue
        known.setdefault(edge.node, {})[edge.place] = is_chosen(*edge) if found is None else found
        pending.pop()
    return known[node][place]


def _at_once(edge: Edge, known: _Known) -> tuple[bool | None, Edge | None]:
    """What can be told of an output of a node of ours without going further; else where to go on, if anywhere."""
    if not _engine_runs(edge.node):
        return False, None
    following = _following(edge)
    if any(_engine_runs(node) for node, _ in following if not _is_ours(node)):
        return True, None
    further = None
    for one in following:
        if _is_ours(one.node):
            told = known.get(one.node, {}).get(one.place)
            if told:
                return True, None
            if told is None:
                further = one
    return None, further


def _is_ours(node: Any) -> bool:
    return hasattr(getattr(node, "_forward_cls", None), "following") or (
        node is not None and node.name() in _PASSING
    )


def _following(edge: Edge) -> list[Edge]:
    if edge.node.name() in _PASSING:
        return [Edge(*following) for following in edge.node.next_functions]
    found: list[Edge] = edge.node._forward_cls.following(*edge)
    return found


def _engine_runs(node: Any) -> bool:
    if node is None:
        return False
    if (
        type(node) is _Leaf
    ):  # the engine raises about a leaf that was chosen, which costs more than all else here
        leaves = _leaves_of_this_backward()
        if leaves:
            return id(node.variable) in leaves
    try:
        return bool(_will_execute(node))
    except RuntimeError:  # a leaf that was chosen
        return True


def _known_of_this_backward() -> _Known:
    """What has been told of outputs of nodes of ours: each is asked about by all that lead to it."""
    _begin_this_backward()
    if _told.known is None:
        _told.known = weakref.WeakKeyDictionary()
    return _told.known


def _leaves_of_this_backward(ours: int = 1) -> frozenset[int]:
    """The leaves that were chosen, by identity; none where that cannot be told. ``ours``: this call and those next to
    it that are known not to have started the backward."""
    _begin_this_backward()
    leaves = _told.leaves
    if leaves is None:
        chosen = _chosen(ours + 1) or ()
        are_tensors = all(isinstance(one, torch.Tensor) for one in chosen)
        _told.leaves = leaves = frozenset(map(id, chosen)) if are_tensors else frozenset()
    return leaves


def _begin_this_backward() -> None:
    task = _current_task()
    if _told.task != task:
        _told.task, _told.known, _told.leaves = task, None, None


def is_chosen(node: Any, place: int) -> bool:
    """Whether this output's gradient is asked for itself; True where that cannot be told."""
    chosen = _chosen()
    return chosen is None or _is_among(chosen, node, place)


def is_chosen_leaf(leaf: torch.Tensor) -> bool:
    """The same of a leaf that the function made."""
    chosen = _chosen()
    return chosen is None or any(one is leaf or _leaf_at(one) is leaf for one in chosen)


def _leaf_at(edge: Any) -> Any:
    return None if isinstance(edge, torch.Tensor) else getattr(edge.node, "variable", None)


def _is_among(chosen: Iterable[Any], node: Any, place: int) -> bool:
    for one in chosen:
        edge = edge_of(one) if isinstance(one, torch.Tensor) else (one.node, one.output_nr)
        if edge == (node, place):
            return True
    return False


def edge_of(tensor: Any) -> Edge | None:
    """Where a tensor's gradient arrives, if it has a history."""
    return None if tensor.grad_fn is None else Edge(tensor.grad_fn, tensor.output_nr)


def _chosen(ours: int = 1) -> Sequence[Any] | None:
    """The tensors that were chosen, or their edges, as the call that started this backward was given them: none, if it
    reaches everything. None where that call is not found."""
    call = _call(ours + 1)
    given: Sequence[Any] = () if call is None else call.f_locals.get("args", ())
    return given[_INPUTS] if len(given) > _INPUTS else None


def _call(ours: int = 1) -> FrameType | None:
    """The call that started this backward, if it is in this thread. ``ours``: the calls next to this one that are known
    not to be it. Python makes an object for every frame that is looked at, which costs more than all else here."""
    frame: FrameType | None = sys._getframe(ours)
    while frame is not None and frame.f_code is not _RUNS:
        frame = frame.f_back
    return frame


class Reach:
    """What the outputs of a compiled function's node lead to."""

    __slots__ = ("_are_all_reached", "_earlier", "_edges", "_leading", "_places")

    def __init__(
        self,
        inputs: Sequence[int],
        partly: Mapping[int, Sequence[int]],
        places: Sequence[int],
        earlier: Mapping[int, int],
    ) -> None:
        """``inputs``: all that get a gradient; ``partly``: those that only some of the outputs ``places`` lead to;
        ``earlier``: results that others are computed from, with the numbers that they have behind the inputs."""
        self._earlier = earlier
        self._leading = [(index, frozenset(partly.get(index, places))) for index in inputs]
        self._places = places
        leading = {place for _, places_of_one in self._leading for place in places_of_one}
        self._are_all_reached = leading.issuperset(places)
        self._edges: tuple[int, ...] | None = None

    def following(self, node: Any, place: int) -> list[Edge]:
        """Where an output of the node leads."""
        edges = edges_of_inputs(node)
        return [edges[index] for index, places in self._leading if place in places and index in edges]

    def reached(self, node: Any, grads: Sequence[Any]) -> tuple[Sequence[Any], list[int]]:
        """Of gradients that arrive at the node those that eager's graph would take further, others as None, and the
        inputs that no chosen tensor lies behind."""
        leaves = _leaves_of_this_backward(_BELOW_REACHED)
        if leaves and self._leads_to(node, leaves):
            return grads, []
        edges = edges_of_inputs(node)
        wanted = {index for index, _ in self._leading if _leads(edges.get(index), leaves)}
        reached = {place for index, places in self._leading if index in wanted for place in places}
        kept = [
            None if place in self._places and place not in reached else g for place, g in enumerate(grads)
        ]
        return kept, [index for index, _ in self._leading if index not in wanted]

    def _leads_to(self, node: Any, leaves: frozenset[int]) -> bool:
        """Whether all inputs are among these leaves, so that all gradients go further: true of most steps."""
        if not self._are_all_reached or getattr(node, "edges", None):
            return False
        if self._edges is None:
            numbers = {index: number for number, index in enumerate(node._forward_cls.tensor_inputs)}
            self._edges = tuple([numbers[index] for index, _ in self._leading])
        following = node.next_functions
        for number in self._edges:
            leaf = following[number][0]
            if type(leaf) is not _Leaf or id(leaf.variable) not in leaves:
                return False
        return True

    def targets(self, node: Any, unwanted: Collection[int]) -> int:
        """The inputs that get a gradient, but for these, and the earlier results that are chosen, as bits."""
        inputs = sum(1 << index for index, _ in self._leading if index not in unwanted)
        return inputs | self.earlier(i for i in self._earlier if node.watched[i].is_chosen())

    def earlier(self, chosen: Iterable[int]) -> int:
        """These of the earlier results, as bits."""
        return sum(1 << self._earlier[index] for index in chosen)


def edges_of_inputs(node: Any) -> dict[int, Edge]:
    """Where the gradients of a compiled function's inputs go, past nodes of its own that lead there. A view that was
    made with gradients off requires grad like its base, and leads nowhere."""
    tensors: Sequence[int] = node._forward_cls.tensor_inputs
    edges = zip(tensors, node.next_functions, strict=True)
    found = {index: Edge(*edge) for index, edge in edges if edge[0] is not None}
    for index, (delivery, place) in getattr(node, "edges", {}).items():
        leading = [edge for edge in delivery.grad_fn.next_functions if edge[0] is not None]
        found[index] = Edge(*leading[place])
    return found


def _leads(edge: Edge | None, leaves: frozenset[int]) -> bool:
    """Whether a chosen tensor lies behind an edge; ``leaves`` are those that were chosen, if that can be told."""
    if edge is None:
        return False
    if leaves and type(edge.node) is _Leaf:  # as most are
        return id(edge.node.variable) in leaves
    return leads_on(*edge)


def is_reached_at(node: weakref.ref[Any], place: int) -> bool:
    """Whether eager reaches this output of a node, or of one around it, in the backward that runs: also one that leads
    to nothing, if the backward begins there alone."""
    chosen = _chosen()
    if not chosen:
        return True
    alive = node()
    return alive is None or _is_only_root(alive) or leads_on(alive, place) or _is_among(chosen, alive, place)


def _is_only_root(node: Any) -> bool:
    """Whether the backward begins at this node and at no other."""
    call = _call()
    roots: Sequence[Any] = () if call is None else call.f_locals.get("t_outputs", ())
    if len(roots) != 1:
        return False
    edge = edge_of(roots[0]) if isinstance(roots[0], torch.Tensor) else roots[0]
    return edge is not None and edge.node is node
