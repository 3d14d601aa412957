"""Which results of a traced program are computed from which others, and from which inputs, as autograd knows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def saving(results: Iterable[torch.Tensor]) -> tuple[bool, ...]:
    """For each result whether a node behind it may have saved a tensor, which a backward lets go of."""
    clear: set[Any] = set()
    return tuple([_leads_to_a_saving_node(tensor.grad_fn, clear) for tensor in results])


def _leads_to_a_saving_node(root: Any, clear: set[Any]) -> bool:
    """``clear``: nodes that lead to none; more are added if this one is."""
    seen: set[Any] = set()
    pending = [root]
    while pending:
        node = pending.pop()
        if node is None or node in seen or node in clear:
            continue
        seen.add(node)
        if any(name.startswith("_raw_saved_") for name in dir(type(node))):
            return True
        pending += [following for following, _ in node.next_functions]
    clear |= seen
    return False


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
