"""Which results of a traced program are computed from which others, and from which inputs, as autograd knows it."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch


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


def freed_together(results: Sequence[torch.Tensor]) -> tuple[tuple[int, ...], ...]:
    """For each result (by position) those that share a node with it which may have saved a tensor, and which lets go of
    it in a backward of either: itself among them, or none where nothing is saved for it."""
    masks: dict[Any, int] = {}
    for position, tensor in enumerate(results):
        if tensor.grad_fn is not None:
            masks[tensor.grad_fn] = masks.get(tensor.grad_fn, 0) | 1 << position
    shared: set[int] = set()
    for node in _from_results_on(list(masks)):
        mask = masks[node]
        if _may_save(node):
            shared.add(mask)
        for following, _ in node.next_functions:
            if following is not None:
                masks[following] = masks.get(following, 0) | mask
    together = [0] * len(results)
    for mask in shared:
        for position in _positions(mask):
            together[position] |= mask
    return tuple([_positions(mask) for mask in together])


def _positions(mask: int) -> tuple[int, ...]:
    return tuple([position for position in range(mask.bit_length()) if mask >> position & 1])


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


def _may_save(node: Any) -> bool:
    """Whether a node saves tensors. That of a function written in Python tells whether it has, until it has let go."""
    kind: Any = type(node)
    if not hasattr(kind, "_raw_saved_tensors"):
        return _saves(kind)
    try:
        return bool(node._raw_saved_tensors)
    except RuntimeError:
        return True


@functools.cache
def _saves(kind: Any) -> bool:
    return any(name.startswith("_raw_saved_") for name in dir(kind))


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
