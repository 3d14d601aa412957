"""Which results of a traced program are computed from which others, and from which inputs, as autograd knows it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from aot_autograd.plan import Region


def ancestry(results: Mapping[int, torch.Tensor]) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """For each of ``results`` (by number) that is computed from others, those. What others are computed from comes
    first, among the pairs and within each of them."""
    if len(results) < 2:
        return ()
    bits: dict[Any, int] = {}
    for position, tensor in enumerate(results.values()):
        bits.setdefault(_place(tensor), 1 << position)
    numbers = list(results)
    roots = [tensor.grad_fn for tensor in results.values() if tensor.grad_fn is not None]
    above = _bits_above(roots, bits)
    masks = {n: 0 if t.grad_fn is None else above[t.grad_fn] for n, t in results.items()}
    order = sorted(numbers, key=lambda number: masks[number].bit_count())
    found = []
    for number in order:
        earlier = tuple(n for n in order if masks[number] >> numbers.index(n) & 1 and n != number)
        if earlier:
            found.append((number, earlier))
    return tuple(found)


def partly_reached(
    results: Mapping[int, torch.Tensor], inputs: Mapping[int, torch.Tensor]
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """The inputs (leaves, by number) that autograd reaches from some of the results or from none, with those.

    A leaf may be reached that never gets a gradient: an autograd function may return None for it.
    """
    bits = {id(leaf): 1 << position for position, leaf in enumerate(inputs.values())}
    above = _bits_above([tensor.grad_fn for tensor in results.values() if tensor.grad_fn is not None], bits)
    masks = {n: bits.get(id(t), 0) if t.grad_fn is None else above[t.grad_fn] for n, t in results.items()}
    found = []
    for position, index in enumerate(inputs):
        leading = tuple(n for n, mask in masks.items() if mask >> position & 1)
        if len(leading) < len(results):
            found.append((index, leading))
    return tuple(found)


def saving_regions(
    results: Mapping[int, torch.Tensor], targets: Mapping[int, torch.Tensor]
) -> tuple[Region, ...]:
    """The largest regions of autograd's graph in which one node has saved something: the results that lead to it, and
    the targets (leaves, and results in the midst of the graph) that it leads to, both by number.

    A backward of some results for some targets runs the nodes whose regions hold one of those and one of these; it is
    refused where one of them has let go of what it saved. A region that is part of another one tells nothing more:
    wherever its node runs, the other one's does.
    """
    leading: dict[Any, int] = {}
    for number, tensor in results.items():
        if tensor.grad_fn is not None:
            leading[tensor.grad_fn] = leading.get(tensor.grad_fn, 0) | 1 << number
    order = _from_results_on(list(leading))
    for node in order:
        for following, _ in node.next_functions:
            if following is not None:
                leading[following] = leading.get(following, 0) | leading[node]
    places: dict[Any, int] = {}
    for number, target in targets.items():
        places[_place(target)] = places.get(_place(target), 0) | 1 << number
    behind: dict[Any, int] = {}
    for node in reversed(order):
        behind[node] = places.get(id(getattr(node, "variable", None)), 0)
        for following, place in node.next_functions:
            behind[node] |= behind.get(following, 0) | places.get((following, place), 0)
    return largest((leading[node], behind[node]) for node in order if behind[node] and _saves(node))


def largest(regions: Iterable[Region]) -> tuple[Region, ...]:
    """Those that are no part of another one."""
    found: list[Region] = []
    for results, inputs in sorted(
        set(regions), key=lambda one: (-one[0].bit_count(), -one[1].bit_count(), one)
    ):
        if not any(results | more == more and inputs | further == further for more, further in found):
            found.append((results, inputs))
    return tuple(found)


def _from_results_on(roots: list[Any]) -> list[Any]:
    """All nodes behind the roots, each before those that it leads to."""
    order: list[Any] = []
    begun: set[Any] = set()
    waiting = [(root, False) for root in roots]
    while waiting:
        node, is_done = waiting.pop()
        if is_done:
            order.append(node)
        elif node not in begun:
            begun.add(node)
            waiting.append((node, True))
            waiting += [(n, False) for n, _ in node.next_functions if n is not None and n not in begun]
    return order[::-1]


def _saves(node: Any) -> bool:
    """Whether a node has saved tensors. Of a node for lists torch tells nothing."""
    kind: Any = type(node)
    try:
        if hasattr(kind, "_raw_saved_tensors"):  # a function written in Python
            return bool(node._raw_saved_tensors)
        return any(_holds(getattr(node, name)) for name in _slots(kind)) or node.name().startswith("Foreach")
    except RuntimeError:  # the program itself has differentiated it
        return True


def _holds(slot: Any) -> bool:
    if isinstance(slot, tuple | list):
        return any(map(_holds, slot))
    return not hasattr(slot, "data") or slot.data is not None


@functools.cache
def _slots(kind: Any) -> tuple[str, ...]:
    return tuple(name for name in dir(kind) if name.startswith("_raw_saved_"))


def _place(tensor: torch.Tensor) -> Any:
    """What identifies a tensor in autograd's graph: a node and its output's number; for a leaf, itself."""
    return id(tensor) if tensor.grad_fn is None else (tensor.grad_fn, tensor.output_nr)


def _bits_above(roots: list[Any], bits: Mapping[Any, int]) -> dict[Any, int]:
    """For each node that leads to the roots, the bits of all tensors that it is computed from."""
    found: dict[Any, int] = {}
    waiting = list(roots)
    while waiting:
        node = waiting[-1]
        if node in found:
            waiting.pop()
            continue
        edges = [(n, nr) for n, nr in node.next_functions if n is not None]
        missing = [n for n, _ in edges if n not in found]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        mask = 0
        for n, nr in edges:
            leaf = getattr(n, "variable", None)
            mask |= found[n] | bits.get((n, nr) if leaf is None else id(leaf), 0)
        found[node] = mask
    return found
