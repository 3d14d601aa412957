"""Where each buffer of a program lives, decided before any text is written.

Scratch buffers that never reach torch's hands for good share one block of memory a call: a list of slots, each as
large as the largest buffer that it holds in turn. A buffer is moved out of the block into a tensor of its own when an
operator that may keep or return its argument receives it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

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
    sizes = {name: nominal(byte_size(buffer)) for name, buffer in program.buffers().items()}
    candidates = _candidates(program, into_given_memory)
    pieces = lifetimes(program, sizes)
    chosen = small_enough(
        pieces, candidates, len(program.steps), lambda names: _share(program, names).nominal
    )
    return _share(program, chosen)


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
    born = program.born()
    late = {
        name
        for name, buffer in program.buffers().items()
        if born and any(isinstance(n, Expr) and n.symbols & born for n in (*buffer.sizes, *buffer.strides))
    }  # the block is taken before their sizes are known
    return frozenset(found - bound - late)


def _share(program: Program, chosen: frozenset[str]) -> Placement:
    """The slots for ``chosen`` buffers and their successors."""
    slots: list[Slot] = []
    free: list[int] = []
    slot_of: dict[str, int] = {}
    owners: set[str] = set()
    for step in program.steps:
        match step:
            case Reuse(buffer, of) | View(buffer, of):
                if of in slot_of:
                    slot_of[buffer.name] = slot_of[of]
                    if isinstance(step, Reuse):
                        slots[slot_of[of]].add(byte_size(buffer))
                        owners.add(buffer.name)
            case Free(name):
                if name in owners:
                    free.append(slot_of[name])
            case _:
                for buffer in program.defined(step):
                    if buffer.name in chosen:
                        slot_of[buffer.name] = _take(slots, free, byte_size(buffer))
                        owners.add(buffer.name)
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
