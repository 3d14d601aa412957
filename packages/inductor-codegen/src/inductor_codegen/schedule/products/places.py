"""Where a program has a matrix product that a kernel could compute, and which kernel behind it that one could join.

    h = mm(x, w)                    y = new
    y = new                    ->   product(x, w, b) -> y
    run relu(h, b) -> y

A kernel is joined that computes point by point and is the first to read the product, each element once and in the order
of memory. Looked at are the steps of a program before memory is reused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from torch._ops import OpOverload

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import ShapeEnv, product
from fx_interface.tensor_spec import contiguous_strides
from inductor_codegen.ir.gpu.blocks import reduces
from inductor_codegen.ir.index import Index, LoopVar
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.ir.program import Buffer, BufferRef, CallExtern, RunKernel, Step, View
from inductor_codegen.ir.scalar import Guarded, Load, loaded_scalars
from inductor_codegen.ir.traverse import indices_of, postorder, roots_of, statement_indices, statements_of
from inductor_codegen.schedule.programs.liveness import reads

aten = torch.ops.aten
_FIRST: dict[OpOverload, int] = {aten.mm.default: 0, aten.bmm.default: 0, aten.addmm.default: 1}
"""The products, and where the first factor stands among the arguments."""
_DTYPES = (torch.float16, torch.bfloat16)
_LARGEST = 2**31 - 2**16
"""Positions in 32 bits, with room for a tile that runs over the end."""


@dataclass(frozen=True, slots=True)
class Place:
    """A product: the position of its call, its factors, what is ``added``, and the position of the kernel that it can
    be ``joined`` with, whose parameter ``seen`` is the product. ``kept``: something else reads the product, too. It is
    known by its ``names``."""

    at: int
    call: CallExtern
    left: Buffer
    right: Buffer
    result: Buffer
    added: Buffer | None
    names: frozenset[str]
    joined: int | None = None
    seen: str = ""
    kept: bool = True

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Of the batch, rows, between and columns."""
        batch = self.result.sizes[0] if len(self.result.sizes) == 3 else 1
        found = (batch, self.left.sizes[-2], self.left.sizes[-1], self.right.sizes[-1])
        return tuple(map(int, found))  # type: ignore[arg-type,return-value]


class Places:
    """Looks for products among the ``steps`` of a program with these ``buffers`` and ``kernels``; tensors named in
    ``outputs`` are its results."""

    def __init__(
        self,
        steps: Sequence[Step],
        buffers: Mapping[str, Buffer],
        kernels: Mapping[str, Kernel],
        outputs: frozenset[str],
    ) -> None:
        self._steps, self._buffers, self._kernels, self._outputs = steps, buffers, kernels, outputs

    def __iter__(self) -> Iterator[Place]:
        for at, step in enumerate(self._steps):
            if isinstance(step, CallExtern) and step.op in _FIRST:
                found = self._product(at, step)
                if found is not None:
                    yield self._with_joined(found)

    def _product(self, at: int, call: CallExtern) -> Place | None:
        first = _FIRST[call.op]
        if len(call.args) != first + 2 or any(number != 1 for _, number in call.kwargs):
            return None
        given = [self._buffers[arg.name] for arg in call.args if isinstance(arg, BufferRef)]
        (result,) = call.results
        if len(given) != len(call.args) or result is None:
            return None
        held = [*given, result]
        numbers = [number for one in held for number in (*one.sizes, *one.strides)]
        if not all(isinstance(number, int) for number in numbers) or any(0 in one.sizes for one in held):
            return None
        left, right = given[first:]
        same = {one.dtype for one in held} == {left.dtype} and {one.device for one in held} == {left.device}
        if left.dtype not in _DTYPES or not same or any(_reach(one) > _LARGEST for one in held):
            return None
        if result.strides != contiguous_strides(result.sizes):
            return None
        return Place(at, call, left, right, result, given[0] if first else None, frozenset((result.name,)))

    def _with_joined(self, place: Place) -> Place:
        """The place with the kernel that it can be joined with, if there is one."""
        names, parts, joined, seen, others = {place.result.name}, set[str](), None, "", False
        for position in range(place.at + 1, len(self._steps)):
            step = self._steps[position]
            read = [name for name in reads(step) if name in names or name in parts]
            if isinstance(step, View):
                if read:
                    (names if _is_whole(step, place.result) else parts).add(step.buffer.name)
                continue
            if joined is None:
                if isinstance(step, CallExtern) and step.op._schema.is_mutable:
                    return place
                if read:
                    seen = self._read_in_order(step, names, place) if len(read) == 1 else ""
                    if not seen:
                        return place
                    joined = position
            elif read:
                others = True
        if joined is None:
            return place
        kept = others or not self._outputs.isdisjoint(names | parts)
        return replace(place, names=frozenset(names), joined=joined, seen=seen, kept=kept)

    def _read_in_order(self, step: Step, names: set[str], place: Place) -> str:
        """The parameter by which a kernel reads the product, each element at a point of its own; empty if it does not
        read it so."""
        if not isinstance(step, RunKernel) or type(self._kernels[step.kernel]) is not Kernel:
            return ""
        kernel = self._kernels[step.kernel]
        if reduces(kernel) or kernel.windows or len(kernel.passes) != 1 or step.sizes:
            return ""
        pairs = zip(step.buffers, kernel.buffers, strict=True)
        seen = next(parameter.name for name, parameter in pairs if name in names)
        statements = list(statements_of(kernel.passes))
        nodes = postorder(root for statement in statements for root in roots_of(statement))
        indices = [index for node in nodes for index in indices_of(node)]
        indices += [index for statement in statements for index in statement_indices(statement)]
        if any(isinstance(node, Guarded) for node in nodes) or any(
            any(loaded_scalars(one)) for one in indices
        ):
            return ""
        loops = (*kernel.outer, *kernel.inner)
        loads = {node.index for node in nodes if isinstance(node, Load) and node.buffer == seen}
        if len(loads) != 1 or not _is_position(next(iter(loads)), loops, place.result):
            return ""
        return seen if all(_is_narrow(index) for index in indices) else ""


def _reach(buffer: Buffer) -> int:
    """The place of a tensor's last element."""
    pairs = zip(buffer.sizes, buffer.strides, strict=True)
    return sum([(int(size) - 1) * int(stride) for size, stride in pairs])  # type: ignore[arg-type,misc]


def _is_whole(view: View, result: Buffer) -> bool:
    """Whether a view of a product shows all of its elements in their order."""
    shown = view.buffer
    in_order = shown.strides == contiguous_strides(shown.sizes)
    return in_order and view.offset == 0 and product(shown.sizes) == product(result.sizes)


def _is_position(index: Index, loops: Sequence[LoopVar], result: Buffer) -> bool:
    """Whether an index goes once through all elements of a tensor that lies in order, as the loops do in some order."""
    expected = 1
    for atom, coefficient in sorted(index.terms, key=lambda term: int(term[1])):  # type: ignore[arg-type]
        if not isinstance(atom, LoopVar) or coefficient != expected:
            return False
        expected *= int(atom.extent)  # type: ignore[arg-type]
    named = {atom for atom, _ in index.terms}
    return (
        index.const == 0
        and expected == product(result.sizes)
        and named == {loop for loop in loops if loop.extent != 1}
    )


def _is_narrow(index: Index) -> bool:
    bounds = index.bounds(_NO_SYMBOLS)
    return bounds is not None and bounds[0] >= 0 and bounds[1] < _LARGEST  # type: ignore[operator]


_NO_SYMBOLS = ShapeEnv()
