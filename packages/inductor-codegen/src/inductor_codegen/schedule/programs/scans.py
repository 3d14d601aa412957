"""Kernels in the place of library calls that compute running totals: ``cumsum`` and ``cumprod``.

torch goes over one row after the other. Rows that lie beside each other in memory are added up together, in vectors;
of others several take turns, since each addition waits for the one before it. The bits are torch's.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike, ShapeEnv, symbol
from inductor_codegen.ir.index import LoopVar
from inductor_codegen.ir.kernel import Access, BufferParameter, Parameter, SizeParameter, Vector
from inductor_codegen.ir.scan import ScanForm, ScanKernel
from inductor_codegen.ir.scatter import SOURCE, TARGET
from inductor_codegen.lower.layouts import is_disjoint
from inductor_codegen.lower.values import ExternalCall, Lowered, Placed, Value
from inductor_codegen.lower.views import is_one
from inductor_codegen.schedule.kernels.called import Called, named, size_names

_KINDS = {"aten.cumsum.default": "sum", "aten.cumprod.default": "prod"}
_FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
_WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
_FEWEST = 8
"""Rows from which a kernel has something to do while an addition waits for the one before it."""

_LONG = 512
"""Points of a row from which several rows take turns."""


@dataclass(frozen=True, slots=True)
class Running:
    """A call that computes running totals of a tensor along the dimension ``scanned``, as a kernel can."""

    kind: str
    operand: Placed
    source: Value
    result: Value
    number: int
    scanned: int


def running(call: ExternalCall, lowered: Lowered) -> Running | None:
    """What such a call computes; None for others, of nothing, or in a dtype of which torch's own kernel rounds."""
    kind = _KINDS.get(str(call.op))
    number = call.results[0] if len(call.results) == 1 else None
    if kind is None or number is None:
        return None
    operand, dim = call.args[0], call.args[1]
    if not isinstance(operand, Placed) or not isinstance(dim, int):
        return None
    result, source = lowered.values[number], lowered.values[operand.source]
    sizes = result.sizes
    if result.device != source.device or not sizes:
        return None
    if any(isinstance(size, int) and size == 0 for size in sizes):
        return None
    as_it_is = source.dtype == result.dtype and result.dtype in _FLOATS
    if not as_it_is and not (result.dtype == torch.int64 and source.dtype in _WHOLE):
        return None
    return Running(kind, operand, source, result, number, dim % len(sizes))


def scan_kernels(found: Running, lowered: Lowered, env: ShapeEnv) -> list[Called]:
    """The kernel of a CPU for running totals; none where torch's own has to."""
    result, scanned = found.result, found.scanned
    sizes = result.sizes
    if not is_disjoint(sizes, result.strides, env):
        return []
    rows = [place for place, size in enumerate(sizes) if place != scanned and not is_one(size)]
    if _are_few([sizes[place] for place in rows]):
        return []
    read, written = found.operand.layout.strides, result.strides
    beside = [place for place in rows if _is_unit(read[place]) and _is_unit(written[place])]
    if not beside and not _waits(result.dtype, sizes[scanned]):
        return []
    order = [place for place in rows if place not in beside[:1]] + beside[:1]
    loops = joined_dimensions([(sizes[place], read[place], written[place]) for place in order])
    loops.append((sizes[scanned], read[scanned], written[scanned]))
    form = ScanForm(
        found.kind,
        result.dtype,
        found.source.dtype,
        tuple([loop[1] for loop in loops]),
        tuple([loop[2] for loop in loops]),
    )
    named_loops = tuple([LoopVar(f"i{place}", loop[0]) for place, loop in enumerate(loops)])
    vector = Vector.OUTER if beside else Vector.INNER
    return [_scan(form, named_loops, vector, (found.operand, found.number), lowered)]


_Loop = tuple[IntLike, IntLike, IntLike]
"""An extent, and the strides of source and target."""


def joined_dimensions(loops: Sequence[_Loop]) -> list[_Loop]:
    """The loops with neighbours as one where both tensors go on from the end of one to the next of the other."""
    found: list[_Loop] = []
    for size, read, written in loops:
        if found:
            count, *before = found[-1]
            if before == [read * size, written * size]:
                found[-1] = (count * size, read, written)
                continue
        found.append((size, read, written))
    return found


def _waits(dtype: torch.dtype, length: IntLike) -> bool:
    """Whether torch's kernel waits for each addition before the next, or for conversions. Processors begin with the
    next row while they wait for the end of a short one."""
    long = not isinstance(length, int) or length >= _LONG
    return dtype.is_floating_point and (long or dtype.itemsize == 2)


def _are_few(sizes: Sequence[IntLike]) -> bool:
    count = 1
    for size in sizes:
        if not isinstance(size, int):
            return False
        count *= size
    return count < _FEWEST


def _is_unit(stride: IntLike) -> bool:
    return isinstance(stride, int) and stride == 1


def _scan(
    form: ScanForm, loops: tuple[LoopVar, ...], vector: Vector, given: tuple[Placed, int], lowered: Lowered
) -> Called:
    names = size_names((*(loop.extent for loop in loops), *form.source, *form.target))
    parameters: tuple[Parameter, ...] = (
        BufferParameter(SOURCE, form.source_dtype, Access.READ),
        BufferParameter(TARGET, form.dtype, Access.WRITE),
        *map(SizeParameter, names),
    )
    name = named("scan_", (form, loops, vector, parameters))
    comments = (f"running {form.kind}",)
    kernel = ScanKernel(name, parameters, loops[:-1], loops[-1:], vector, (), comments, form=form)
    operand, number = given
    return Called(kernel, (operand, lowered.values[number]), tuple(map(symbol, names)))
