"""Where each buffer of a program lives, decided before any text is written.

Scratch buffers that never reach torch's hands for good share one block of memory a call: a list of slots, each as
large as the largest buffer that it holds in turn. A buffer is moved out of the block into a tensor of its own when an
operator that may keep or return its argument receives it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from functools import cache
from typing import TypeAlias

import torch
from torch._ops import OpOverload

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import Expr, IntLike, evaluate
from inductor_codegen.codegen.wrapper.buffers.footprint import lifetimes, small_enough
from inductor_codegen.ir.program import (
    Allocate,
    Argument,
    Buffer,
    BufferRef,
    CallExtern,
    Free,
    Program,
    Reuse,
    Storage,
    View,
    defined_by,
)

ALIGNMENT = 64
_NOMINAL = 64  # the value that every symbol is taken to have when slots are shared out


@dataclass(slots=True)
class Slot:
    """A part of the scratch block. It holds any of ``sizes`` (bytes, each once), one buffer at a time; ``nominal`` is
    its own size with a nominal value for every symbol."""

    sizes: dict[IntLike, None] = field(default_factory=dict)
    nominal: int = 0

    def add(self, size: IntLike) -> None:
        """Hold a buffer of this size too."""
        self.sizes[size] = None
        self.nominal = max(self.nominal, nominal(size))


@dataclass(frozen=True, slots=True)
class Placement:
    """``slot_of`` maps each buffer in the scratch block, views too, to the number of its slot; ``slots`` are these."""

    slots: tuple[Slot, ...]
    slot_of: dict[str, int]

    @property
    def nominal(self) -> int:
        """The block's size in bytes with a nominal value for every symbol."""
        return sum(slot.nominal for slot in self.slots)


NO_SCRATCH = Placement((), {})
"""Every buffer is a tensor of its own."""


def byte_size(buffer: Buffer) -> IntLike:
    """The bytes that the buffer spans: from its first to behind its last element."""
    if any(isinstance(size, int) and size == 0 for size in buffer.sizes):
        return 0
    span: IntLike = 1
    for size, stride in zip(buffer.sizes, buffer.strides, strict=True):
        span = span + (size - 1) * stride
    return span * buffer.dtype.itemsize


def nominal(size: IntLike) -> int:
    """``size`` with a nominal value for every symbol: good enough to compare sizes with."""
    if isinstance(size, Expr):
        return max(0, evaluate(size, dict.fromkeys(size.symbols, _NOMINAL)))
    return size


def qualified_name(op: OpOverload) -> str:
    """The operator's name as the dispatcher has it: ``aten::add.Tensor``."""
    return op._schema.name if op._overloadname == "default" else f"{op._schema.name}.{op._overloadname}"


@cache
def may_keep_arguments(op: OpOverload) -> bool:
    """Whether the operator's result may share memory with an argument, as far as its registration tells.

    Operators outside of ATen may do anything; so may ATen's composites (``reshape`` returns its argument or a copy).
    """
    if op.namespace != "aten" or any(value.alias_info is not None for value in op._schema.returns):
        return True
    return bool(
        torch._C._dispatch_has_kernel_for_dispatch_key(qualified_name(op), "CompositeImplicitAutograd")
    )


def buffers_of(argument: Argument) -> Iterator[str]:
    """The names of the buffers in an argument."""
    if isinstance(argument, BufferRef):
        yield argument.name
    elif isinstance(argument, (tuple, list)):
        for item in argument:
            yield from buffers_of(item)


def call_buffers(call: CallExtern) -> Iterator[str]:
    """The names of the buffers among a call's arguments, with repetitions."""
    for argument in (*call.args, *(value for _, value in call.kwargs)):
        yield from buffers_of(argument)


def place(program: Program, into_given_memory: frozenset[int]) -> Placement:
    """Share out the scratch block among the buffers that it may hold without raising the call's peak.

    ``into_given_memory`` has the positions of calls whose one result can be written into memory that is given to them.
    """
    spans = _spans(program)
    candidates = _candidates(program, into_given_memory)
    pieces = lifetimes(program, {name: nominal(span) for name, span in spans.items()})
    events = _events(program, candidates)
    chosen = small_enough(
        pieces, candidates, len(program.steps), lambda names: _share(events, spans, names).nominal
    )
    return _share(events, spans, chosen)


def _spans(program: Program) -> dict[str, IntLike]:
    """The bytes that every buffer spans. Few forms occur: layers have the same."""
    known: dict[Hashable, IntLike] = {}
    found: dict[str, IntLike] = {}
    for name, buffer in program.buffers().items():
        form = (buffer.sizes, buffer.strides, buffer.dtype)
        span = known.get(form)
        if span is None:
            span = known[form] = byte_size(buffer)
        found[name] = span
    return found


def _candidates(program: Program, into_given_memory: frozenset[int]) -> frozenset[str]:
    """The buffers that could live in the block."""
    bound = _bound_to_torch(program)
    found: set[str] = set()
    for position, step in enumerate(program.steps):
        match step:
            case Allocate(buffer, Storage.SCRATCH):
                found.add(buffer.name)
            case CallExtern(results=(Buffer() as buffer,)) if position in into_given_memory:
                found.add(buffer.name)
    return frozenset(found - bound - _late(program))


def _late(program: Program) -> set[str]:
    """The buffers whose sizes are not known yet where the block is taken."""
    born = program.born()
    if not born:
        return set()
    return {
        name
        for name, buffer in program.buffers().items()
        if any(isinstance(n, Expr) and n.symbols & born for n in (*buffer.sizes, *buffer.strides))
    }


class _Change(Enum):
    """What a step does to a buffer."""

    NEW = "new"
    REUSE = "reuse"
    VIEW = "view"
    FREE = "free"


_Event: TypeAlias = tuple[_Change, str, str]
"""A buffer's name, and that of the buffer whose memory it has from now on."""


def _events(program: Program, candidates: frozenset[str]) -> list[_Event]:
    """What the steps do to these buffers and those that have their memory, for who goes through them several times."""
    found: list[_Event] = []
    followed: set[str] = set()
    for step in program.steps:
        match step:
            case Reuse() | View():
                if step.of in followed:
                    followed.add(step.buffer.name)
                    change = _Change.REUSE if isinstance(step, Reuse) else _Change.VIEW
                    found.append((change, step.buffer.name, step.of))
            case Free():
                if step.name in followed:
                    found.append((_Change.FREE, step.name, ""))
            case _:
                new = [buffer.name for buffer in defined_by(step) if buffer.name in candidates]
                followed.update(new)
                found += [(_Change.NEW, name, "") for name in new]
    return found


def _share(events: Sequence[_Event], spans: Mapping[str, IntLike], chosen: frozenset[str]) -> Placement:
    """The slots for ``chosen`` buffers and their successors."""
    slots: list[Slot] = []
    free: list[int] = []
    slot_of: dict[str, int] = {}
    owners: set[str] = set()
    for change, name, of in events:
        if change is _Change.NEW:
            if name in chosen:
                slot_of[name] = _take(slots, free, spans[name])
                owners.add(name)
        elif change is _Change.FREE:
            if name in owners:
                free.append(slot_of[name])
        elif of in slot_of:
            slot_of[name] = slot_of[of]
            if change is _Change.REUSE:
                slots[slot_of[of]].add(spans[name])
                owners.add(name)
    return Placement(tuple(slots), slot_of)


def _take(slots: list[Slot], free: list[int], size: IntLike) -> int:
    """The free slot that wastes least, else the largest free one (it grows), else a new one."""
    wanted = nominal(size)
    fitting = [number for number in free if slots[number].nominal >= wanted]
    if fitting:
        chosen = min(fitting, key=lambda number: slots[number].nominal)
    elif free:
        chosen = max(free, key=lambda number: slots[number].nominal)
    else:
        slots.append(Slot())
        free.append(len(slots) - 1)
        chosen = len(slots) - 1
    free.remove(chosen)
    slots[chosen].add(size)
    return chosen


def _bound_to_torch(program: Program) -> frozenset[str]:
    """Buffers that need memory of torch's own: what outputs share, and what operators may keep."""
    bound = set(program.escaping())
    for step in program.steps:
        if isinstance(step, CallExtern) and may_keep_arguments(step.op):
            bound.update(call_buffers(step))
    for step in reversed(program.steps):
        if isinstance(step, (View, Reuse)) and step.buffer.name in bound:
            bound.add(step.of)
    return frozenset(bound)
