"""Derivatives that read the function's results lead to these, with their hooks, and not to copies of them.

The derivative of ``r = x.exp()`` is ``gradient * r``. In eager a second derivative goes through ``r`` itself: its hooks
are called, its gradient is kept, it may be asked for. The gradients of a program that was run again lead to the result
of that run. So they get a node (``_Through``) that leads to the results that the first run returned:

    gradient of x ── Through ──▶ x, what arrived at r, r ── CompiledFunction ──▶ x

Its backward differentiates the repeated program's gradients up to those. Its gradients lead on in the same way, so
that derivatives of any order do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import get_gradient_edge

from aot_autograd.plan import BackwardPlan, FromGraph, JointPlan, SavedOutput
from aot_autograd.runtime.hooks.chosen_tensors import chooses, leads_on
from aot_autograd.runtime.hooks.watched_results import HooksWithoutTensorError, Watched
from fx_interface.regions.differentiable import ended_derivatives

_keeps_graph = torch._C._autograd._get_current_graph_task_keep_graph


class ReadResults:
    """The results of one compiled function that derivatives may read, by number: a graph result, or ``-1 - n`` for the
    program's result number n, which is a view (as in ``BackwardPlan.between``)."""

    def __init__(self, plan: JointPlan, backward_plan: BackwardPlan) -> None:
        shown = {recipe.index for recipe in plan.recipes if isinstance(recipe, FromGraph)}
        read = [i for i in backward_plan.read if i in shown and i in plan.differentiable]
        earlier = [i for _, parts in backward_plan.between for i in parts]
        self.indices = tuple(dict.fromkeys([*earlier, *read]))
        places = {s.index: n for n, s in enumerate(backward_plan.saved) if isinstance(s, SavedOutput)}
        linked = {index for index, _ in backward_plan.between}
        self._slots = {i: places[i] for i in read if i in places and i not in linked}
        self.unsaved = tuple(i for i in self.indices if i not in self._slots)
        """Those that are watched in each call; the others are among what autograd has saved, with their node."""

    def of_call(self, node: Any, saved: Sequence[Any]) -> dict[int, torch.Tensor | None]:
        """Those of a call that is at ``node``, which has ``saved`` this; None for one that has hooks but is gone. What
        nobody can look at is left out."""
        watched: Mapping[int, Watched] = getattr(node, "watched", {})
        on_their_way = bool(getattr(node, "edges", ()))  # nodes of other kinds follow all results
        found: dict[int, torch.Tensor | None] = {}
        for index in self.indices:
            slot = None if on_their_way else self._slots.get(index)
            if slot is not None and saved[slot].grad_fn is not None:
                found[index] = saved[slot]
                continue
            try:
                tensor = watched[index].as_it_was() if index in watched else None
            except HooksWithoutTensorError:
                found[index] = None
                continue
            if tensor is not None:
                found[index] = tensor
            elif index not in watched:  # saved, and given out without its node
                found[index] = None
        return found


class Sources(NamedTuple):
    """What gradients of a repeated program lead to: ``inputs``; what has ``arrived``, which may depend on the inputs
    itself (a part of a gradient that a hook has changed); and tensors of that program, each with the result that it
    stands for, or None where that is gone."""

    inputs: tuple[torch.Tensor, ...]
    arrived: tuple[torch.Tensor, ...]
    results: tuple[tuple[torch.Tensor, torch.Tensor | None], ...]

    def with_more(self, tensors: Iterable[torch.Tensor | None]) -> Sources:
        """These and others that have arrived."""
        more = [t for t in tensors if t is not None and t.requires_grad]
        return Sources(self.inputs, (*self.arrived, *more), self.results)

    def ends(self) -> Iterator[torch.Tensor]:
        """Where derivatives of the gradients end: what is behind is differentiated by who asks for those."""
        yield from (tensor for tensor, _ in self.results)
        yield from self.arrived


Refuse = Callable[[Sequence[Any]], Sequence[Any]]


def through_results(gradients: Sequence[Any], sources: Sources, refuse: Refuse) -> list[Any]:
    """The gradients, led to the results that they read; ``refuse`` takes those whose result has hooks and is gone."""
    made = list(gradients)
    edges: dict[Any, tuple[torch.Tensor, torch.Tensor | None]] = {}
    for inner, outer in [
        *sources.results,
        *((tensor, tensor) for tensor in (*sources.inputs, *sources.arrived)),
    ]:
        edges.setdefault(_edge(inner), (inner, outer))
    numbers = {edge: number for number, edge in enumerate(edges)}
    reading = sum(1 << number for edge, number in numbers.items() if edges[edge][1] is not edges[edge][0])
    present = [
        n for n, g in enumerate(made) if g is not None and g.grad_fn is not None and _edge(g) not in edges
    ]
    masks, leaves = _reached([made[n].grad_fn for n in present], numbers)
    edges |= {_edge(leaf): (leaf, leaf) for leaf in leaves}
    groups: dict[int, list[int]] = {}
    for n in present:
        mask = masks[made[n].grad_fn]
        if mask & reading:
            groups.setdefault(mask, []).append(n)
    for mask, members in groups.items():
        reached = [edges[edge] for edge, number in numbers.items() if mask >> number & 1]
        given = [made[n] for n in members]
        if any(outer is None for _, outer in reached):
            led: Sequence[Any] = refuse(given)
        else:
            ends = [tensor for tensor, _ in reached]
            led = _Through.apply(_Reading(given, ends, sources, refuse), *[t for _, t in reached])  # type: ignore[no-untyped-call]
        for n, gradient in zip(members, led, strict=True):
            made[n] = gradient
    return made


class _Reading:
    """What a node leads to its sources: gradients, and the repeated program's tensors at which these end."""

    __slots__ = ("gradients", "inner", "refuse", "sources")

    def __init__(
        self, gradients: list[torch.Tensor], inner: list[torch.Tensor], sources: Sources, refuse: Refuse
    ) -> None:
        self.gradients = gradients
        self.inner = inner
        self.sources = sources
        self.refuse = refuse

    def derivatives(self, arriving: Sequence[torch.Tensor | None], wanted: Sequence[int]) -> Sequence[Any]:
        """Of what arrives at the gradients, that of each of ``inner`` that is ``wanted``, and not through another one
        of those."""
        again = torch.is_grad_enabled()
        made: list[Any] = [None] * len(self.inner)
        pairs = [(g, a) for g, a in zip(self.gradients, arriving, strict=True) if a is not None]
        if not pairs or not wanted:
            return made
        with torch.enable_grad(), replacing((tensor, None) for tensor in self.sources.ends()):
            found: Sequence[Any] = torch.autograd.grad(
                [gradient for gradient, _ in pairs],
                [self.inner[n] for n in wanted],
                [a for _, a in pairs],
                retain_graph=True,
                create_graph=again,
                allow_unused=True,
            )
        if again:
            found = through_results(found, self.sources.with_more(a for _, a in pairs), self.refuse)
        for n, gradient in zip(wanted, found, strict=True):
            made[n] = gradient
        return made


class _Through(torch.autograd.Function):
    """The identity on gradients of a repeated program, which leads to what they are computed from."""

    @staticmethod
    def forward(ctx: Any, reading: _Reading, *sources: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.set_materialize_grads(False)
        made = tuple(gradient.detach() for gradient in reading.gradients)
        ctx.save_for_backward(made[0])  # so that a second backward is refused after one that frees the graph
        ctx.reading = reading
        return made

    @staticmethod
    def backward(ctx: Any, *arriving: Any) -> Any:
        _ = ctx.saved_tensors
        reading = ctx.reading
        if not _keeps_graph():
            ctx.reading = None
        wanted: Sequence[int] = range(len(reading.inner))
        if chooses():
            # What leads to no chosen tensor does not run: it may refuse, as ``once_differentiable`` does.
            edges = ctx.next_functions
            wanted = [n for n in wanted if edges[n][0] is not None and leads_on(*edges[n])]
        return (None, *reading.derivatives(arriving, wanted))


def _edge(tensor: torch.Tensor) -> tuple[Any, int]:
    edge = get_gradient_edge(tensor)
    return edge.node, edge.output_nr


def _reached(
    roots: Sequence[Any], numbers: dict[tuple[Any, int], int]
) -> tuple[dict[Any, int], list[torch.Tensor]]:
    """For each node from the roots on the bits of the edges that it leads to first, by ``numbers``; and the leaves that
    are none of these, which get a number."""
    found: dict[Any, int] = {}
    leaves: list[torch.Tensor] = []
    waiting = list(roots)
    while waiting:
        node = waiting[-1]
        if node in found:
            waiting.pop()
            continue
        edges = [edge for edge in node.next_functions if edge[0] is not None]
        for edge in edges:
            if edge not in numbers and (leaf := getattr(edge[0], "variable", None)) is not None:
                numbers[edge] = len(numbers)
                leaves.append(leaf)
        missing = [n for n, nr in edges if (n, nr) not in numbers and n not in found]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        mask = 0
        for edge in edges:
            number = numbers.get(edge)
            mask |= found[edge[0]] if number is None else 1 << number
        found[node] = mask
    return found, leaves


@contextmanager
def replacing(gradients: Iterable[tuple[torch.Tensor, torch.Tensor | None]]) -> Iterator[None]:
    """In this block autograd replaces what has arrived at each tensor by this gradient; None: nothing goes on there,
    not even zeros, which would become NaN where a derivative is infinite."""
    with ExitStack() as stack:
        for tensor, gradient in gradients:
            if gradient is None:
                stack.enter_context(ended_derivatives())
            if tensor.grad_fn is not None:
                replace = partial(_instead, tensor.output_nr, gradient)
                stack.callback(tensor.grad_fn.register_prehook(replace).remove)
        yield


def _instead(
    number: int, gradient: torch.Tensor | None, arriving: Sequence[torch.Tensor | None]
) -> tuple[torch.Tensor | None, ...]:
    return (*arriving[:number], gradient, *arriving[number + 1 :])
