"""Copies around modules with backward hooks, in the place of identities that show the same memory.

    y = Identity(x); y.grad_fn.register_hook(h)     ->      z = x.clone(); z.register_hook(h); y = Identity(z.clone())

A graph's results that share memory have one history, and a hook belongs to one (``polyfills/torch/module_hooks``).
Nobody can tell the copies from ``x`` as long as none of them is written to, and one tensor at most that shows that
memory is there behind the graph. Otherwise the frame is captured again, with identities.
"""

from __future__ import annotations

from collections.abc import Iterable

from dynamo_capture.foundation.errors import CapturedAnew
from dynamo_capture.graph.graph_builder import is_given
from dynamo_capture.polyfills.torch.module_hooks import copies_are_made, note_copies
from dynamo_capture.semantics.registry import handles
from dynamo_capture.values import NONE, Const, TensorValue, Value
from dynamo_capture.values.base import Context


class CopiedMemory:
    """The memories that are one memory in eager, and the copies, which the program does not see."""

    __slots__ = ("copies", "memories")

    def __init__(self, memory: TensorValue) -> None:
        self.memories = [memory]
        self.copies: list[TensorValue] = []

    @property
    def given(self) -> TensorValue | None:
        """The one that was there before the graph."""
        return self.memories[0] if is_given(self.memories[0]) else None


@handles(copies_are_made)
def answer(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Const(tx.policy.hooked_copies.are_made)


@handles(note_copies)
def note(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The first tensor, and copies of it."""
    tensor, *copies = (tx.force(arg) for arg in args)
    if isinstance(tensor, TensorValue):
        known = tx.effects.hooked_copies
        copied = known.setdefault(id(tensor.memory), CopiedMemory(tensor.memory))
        for copy in copies:
            assert isinstance(copy, TensorValue)
            copied.memories.append(copy.memory)
            copied.copies.append(copy)
            known[id(copy.memory)] = copied
    return NONE


def check_not_copied(tx: Context, changed: Iterable[TensorValue] | None) -> None:
    """Capture the frame again, without copies, if one of the ``changed`` tensors has some. None: any may change."""
    known = tx.effects.hooked_copies
    if known and (changed is None or any(id(tensor.memory) in known for tensor in changed)):
        _share(tx)


def check_handed_out_once(tx: Context, value: TensorValue, shown: dict[int, TensorValue]) -> None:
    """The same if ``value``, which is there behind the graph, is not the only tensor there of its memory; ``shown``:
    what is there so far."""
    copied = tx.effects.hooked_copies.get(id(value.memory))
    if copied is None or any(value is copy for copy in copied.copies):
        return
    first = shown.setdefault(id(copied), copied.given or value.memory)
    if first is not value.memory:
        _share(tx)


def _share(tx: Context) -> None:
    tx.policy.hooked_copies.are_made = False
    raise CapturedAnew
