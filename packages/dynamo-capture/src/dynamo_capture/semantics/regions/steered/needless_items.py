"""``any`` and ``all`` of an iterator whose items only data answer: all items are taken, as nobody can tell.

    any(torch.isnan(p).any() for p in parameters)       # the graph has one answer of all

Python takes no more items once the answer is known. The others are taken in the graph itself, since an iterator cannot
be wound back: where it turns out that somebody could tell, the frame is captured once more, and the graph ends there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from torch.fx import Node

from dynamo_capture.foundation.errors import (
    CapturedAnew,
    GraphBreak,
    NotConstant,
    UserRaise,
    forget_frames,
)
from dynamo_capture.frames.generator_values import GeneratorValue
from dynamo_capture.semantics.regions.reachable import first_outside
from dynamo_capture.semantics.regions.steered.written_branches import are_cheap
from dynamo_capture.semantics.tensors.content.conditions import asked, is_bool, joined
from dynamo_capture.values import IteratorStop, IteratorValue, Value
from dynamo_capture.values.base import Context
from fx_interface.errors import UnbackedSymbolError

_MOST_ITEMS: Final = 1024
_FLAGS: Final = ("draws", "speaks", "may_fail", "lasts", "leaves", "mutates", "assumes", "makes_leaf")
"""What a graph does that somebody could tell."""


def answer(tx: Context, items: Value, first: Value, symbol: str) -> Value | None:
    """The truth of ``first`` and of all that ``items`` still gives, combined by ``|`` or ``&``; None where the items
    are to be taken one after the other."""
    functions, place, output = tx.policy.functions, tx.where(), tx.output
    if not isinstance(items, IteratorValue) or place in functions.one_by_one:
        return None
    if output.is_transformed or tx.tensors.modes or tx.tensors.emptied or asked(tx, first) is None:
        return None
    advanced = _inner(items)
    outer = [one for one in tx.generators if not one.finished and one not in advanced]
    last = next(iter(reversed(output.graph.nodes)), None)
    bodies, drawn = len(output.bodies), len(tx.draws.log)
    with tx.effects.observed() as touched, _told(output) as told:
        values = _rest(tx, items, first)
    found = None if values is None else joined(tx, symbol, values)
    made = _calls_behind(output.graph.nodes, last)
    if (
        found is None
        or any(told.values())
        or (len(output.bodies), len(tx.draws.log)) != (bodies, drawn)
        or not are_cheap(made, 16 * len(values or ()))
        or first_outside(tx, [*touched, *advanced], [], outer) is not None
    ):
        functions.one_by_one.add(place)
        raise CapturedAnew
    return found


def _rest(tx: Context, items: IteratorValue, first: Value) -> list[Value] | None:
    values = [first]
    try:
        while len(values) <= _MOST_ITEMS:
            item = items.next(tx)
            if not is_bool(item) and asked(tx, item) is None:
                return None
            values.append(item)
    except IteratorStop:
        return values
    except (GraphBreak, NotConstant, UnbackedSymbolError, UserRaise) as error:
        forget_frames(error)
        return None
    return None


@contextmanager
def _told(output: Any) -> Iterator[dict[str, bool]]:
    """Which of the flags are set meanwhile."""
    before = {name: getattr(output, name) for name in _FLAGS}
    for name in _FLAGS:
        setattr(output, name, False)
    found: dict[str, bool] = {}
    try:
        yield found
    finally:
        found |= {name: getattr(output, name) for name in _FLAGS}
        for name in _FLAGS:
            setattr(output, name, before[name] or found[name])


def _inner(items: Value) -> list[Value]:
    """An iterator, and those that it draws from where it is a generator."""
    found, pending = list[Value](), [items]
    while pending:
        one = pending.pop()
        if one in found:
            continue
        found.append(one)
        if isinstance(one, GeneratorValue):
            held = [*one.frame.stack, *one.frame.variables.values()]
            pending += [part for part in held if isinstance(part, IteratorValue)]
    return found


def _calls_behind(nodes: Any, last: Node | None) -> list[Node]:
    made = []
    for node in reversed(nodes):
        if node is last:
            break
        made.append(node)
    return [node for node in made if node.op.startswith("call")]
