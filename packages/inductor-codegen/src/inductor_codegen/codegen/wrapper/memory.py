"""Memory in an entry: handles, data pointers and the scratch block, written only where a step needs them.

A buffer may have a handle (a torch tensor), a data pointer, or both. Inputs have handles that are borrowed; a buffer
in the scratch block has a pointer, and gets a handle when a library operator needs one. On a GPU there is no scratch
block: torch's allocator there keeps freed memory at hand, and gives it out in well under a microsecond.
"""

from __future__ import annotations

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike
from inductor_codegen.codegen.wrapper.buffers.placement import ALIGNMENT, NO_SCRATCH, Slot, place
from inductor_codegen.codegen.wrapper.integers import integer
from inductor_codegen.codegen.wrapper.routes.routes import RouteKind, routes_of
from inductor_codegen.codegen.wrapper.text import Text
from inductor_codegen.ir.program import Buffer, CallExtern, Program


@dataclass(slots=True)
class _Held:
    """What the entry has of a buffer at this point: C++ expressions, None where there is none yet.

    ``base`` is the buffer that this one is a view or the successor of, ``offset`` elements behind its start.
    """

    buffer: Buffer
    handle: str | None = None
    owned: bool = False
    pointer: str | None = None
    base: _Held | None = None
    offset: IntLike = 0
    slot: int | None = None


class MemoryWriter:
    """Writes allocation, views and freeing, and knows how to name every buffer."""

    def __init__(self, program: Program, text: Text, device: torch.device) -> None:
        self._text = text
        self.device = device
        self.buffers = program.buffers()
        calls = [(at, step) for at, step in enumerate(program.steps) if isinstance(step, CallExtern)]
        self.routes = routes_of([call for _, call in calls], self.buffers, device)
        given = frozenset(at for at, call in calls if self.routes[id(call)].kind is RouteKind.GIVEN_MEMORY)
        self._placement = place(program, given) if device.type == "cpu" else NO_SCRATCH
        self._held: dict[str, _Held] = {}
        self.pointer_count = 0
        self.handle_count = 0
        tensors = [item for item in program.inputs if isinstance(item, Buffer)]
        self._owned_inputs: dict[str, str] = {}
        for position, item in enumerate(tensors):
            self._held[item.name] = _Held(item, handle=f"in[{position}]")
            self._owned_inputs[item.name] = f"((H*)in)[{len(program.inputs) + position}]"

    def open_inputs(self, wanted: frozenset[str]) -> None:
        """Fetch the data pointers of the inputs among ``wanted``."""
        used = [name for name in self._held if name in wanted]
        if not used:
            return
        place = {name: position for position, name in enumerate(self._held)}
        positions = [place[name] for name in used]
        for position, name in enumerate(used):
            self._held[name].pointer = f"ip[{position}]"
        self._text.line(f"char* ip[{len(used)}];")
        self._text.line(f"TRY(fx_pointers(ip, in, {self._text.table(positions)}, {len(used)}));")

    def open_scratch(self) -> None:
        """Take the scratch block and the slots' offsets ``o``; static slots come first."""
        slots = self._placement.slots
        if not slots:
            return
        self._text.line(f"int64_t o[{len(slots)}];")
        end: IntLike = 0
        symbolic: list[int] = []
        for number, slot in enumerate(slots):
            if any(not isinstance(size, int) for size in slot.sizes):
                symbolic.append(number)
                continue
            self._text.line(f"o[{number}] = {end};")
            end = end + _aligned(max(size for size in slot.sizes if isinstance(size, int)))
        total = str(end)
        for number in symbolic:
            self._text.line(f"o[{number}] = {total};")
            total = f"o[{number}] + fx_align({_largest(slots[number])})"
        self._text.line(f"if (!(f.scratch = fx_scratch_take(graph, {total}))) return 1;")
        self._text.line("char* scratch;")
        self._text.line("TRY(fx_pointer(f.scratch, &scratch));")

    def allocate(self, buffer: Buffer) -> None:
        """Memory of its own, or a place in the scratch block."""
        held = self._define(buffer)
        if held.slot is None:
            layout = self._text.layout(buffer)
            held.pointer = self._new_pointer()
            function = "fx_new" if buffer.device.type == self.device.type else "fx_new_here"
            self._own_handle(held, f"{function}(&$, {layout}, &{held.pointer})")

    def reuse(self, buffer: Buffer, of: str) -> None:
        """The memory of ``of`` under another name, perhaps with another layout. The next step may still read ``of``."""
        before = self._held[of]
        held = self._define(buffer)
        held.pointer = self._pointer(before)
        if held.slot is not None:
            self._drop(before)
        elif _same_layout(before.buffer, buffer) and before.owned:
            held.handle, held.owned = before.handle, True
            before.handle, before.owned = None, False
        else:
            make = "fx_view" if before.buffer.dtype == buffer.dtype else "fx_carve"
            self._own_handle(held, f"{make}(&$, {self.handle(of)}, {self._text.layout(buffer)}, 0)")
            self._drop(before)

    def view(self, buffer: Buffer, of: str, offset: IntLike) -> None:
        """A strided view; its handle and pointer are made when they are needed."""
        held = self._define(buffer)
        held.base, held.offset = self._held[of], offset

    def result(self, buffer: Buffer, handle: str) -> None:
        """A tensor that an operator returned, in the owned handle ``handle``."""
        held = self._define(buffer)
        held.handle, held.owned = handle, True

    def free(self, name: str) -> None:
        """The buffer is not used again; an input's memory goes back if the call owns it."""
        self._drop(self._held[name])
        if name in self._owned_inputs:
            self._text.line(f"fx_free({self._owned_inputs[name]});")

    def give_out(self, name: str, place: str, *, last: bool) -> None:
        """Put an owned handle of the buffer into ``place``; ``last`` says that it is not given out again."""
        handle = self.handle(name)
        held = self._held[name]
        if last and held.owned:
            self._text.line(f"{place} = fx_move({handle});")
        else:
            self._text.line(f"TRY(aoti_torch_new_tensor_handle({handle}, &{place}));")

    def pointer(self, name: str) -> str:
        """The data pointer of the buffer, a ``char*``."""
        return self._pointer(self._held[name])

    def handle(self, name: str) -> str:
        """A handle of the buffer."""
        return self._handle(self._held[name])

    def new_handle(self) -> str:
        """A place for an owned handle, null so far."""
        self.handle_count += 1
        return f"f.h[{self.handle_count - 1}]"

    def _define(self, buffer: Buffer) -> _Held:
        held = self._held[buffer.name] = _Held(buffer, slot=self._placement.slot_of.get(buffer.name))
        return held

    def _pointer(self, held: _Held) -> str:
        if held.pointer is None:
            if held.base is not None:
                value = f"{self._pointer(held.base)} + {integer(held.offset * held.buffer.dtype.itemsize)}"
                held.pointer = self._name_pointer(value)
            elif held.slot is not None:
                held.pointer = self._name_pointer(f"scratch + o[{held.slot}]")
            else:
                held.pointer = self._new_pointer()
                self._text.line(f"TRY(fx_pointer({held.handle}, &{held.pointer}));")
        return held.pointer

    def _name_pointer(self, value: str) -> str:
        name = self._new_pointer()
        self._text.line(f"{name} = {value};")
        return name

    def _new_pointer(self) -> str:
        self.pointer_count += 1
        return f"p[{self.pointer_count - 1}]"

    def _handle(self, held: _Held) -> str:
        if held.handle is None:
            if held.slot is not None:
                offset = f"{self._pointer(held)} - scratch"
                self._own_handle(held, f"fx_carve(&$, f.scratch, {self._text.layout(held.buffer)}, {offset})")
            else:
                self._view_handle(held)
        assert held.handle is not None
        return held.handle

    def _view_handle(self, held: _Held) -> None:
        assert held.base is not None
        base, layout = self._handle(held.base), self._text.layout(held.buffer)
        self._own_handle(held, f"fx_view(&$, {base}, {layout}, {integer(held.offset)})")

    def _own_handle(self, held: _Held, call: str) -> None:
        held.handle, held.owned = self.new_handle(), True
        self._text.line(f"TRY({call.replace('$', held.handle)});")

    def _drop(self, held: _Held) -> None:
        if held.owned:
            self._text.line(f"fx_free({held.handle});")
        held.handle, held.owned = None, False


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _largest(slot: Slot) -> str:
    sizes = list(slot.sizes)
    static = max((size for size in sizes if isinstance(size, int)), default=0)
    text = integer(static) if static else ""
    for size in sizes:
        if not isinstance(size, int):
            text = f"fx_max({text}, {integer(size)})" if text else integer(size)
    return text


def _same_layout(one: Buffer, other: Buffer) -> bool:
    return (one.sizes, one.strides, one.dtype) == (other.sizes, other.strides, other.dtype)
