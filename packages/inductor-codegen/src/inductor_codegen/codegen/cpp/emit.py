"""Kernels as C++ functions: one SIMD loop in each pass, threads from outside, no header."""

from __future__ import annotations

from collections.abc import Iterable

from inductor_codegen.codegen.cpp.analysis.called_functions import with_called_functions
from inductor_codegen.codegen.cpp.analysis.plain_roundings import with_plain_roundings
from inductor_codegen.codegen.cpp.attention.source import emit_attention
from inductor_codegen.codegen.cpp.calls.scan import emit_scan
from inductor_codegen.codegen.cpp.calls.scatter import emit_scatter
from inductor_codegen.codegen.cpp.loops.lanes import LaneWriter
from inductor_codegen.codegen.cpp.loops.rows import RowWriter
from inductor_codegen.codegen.cpp.loops.slices import SliceWriter
from inductor_codegen.codegen.cpp.loops.threads import Sharing, sharing_of
from inductor_codegen.codegen.cpp.loops.transposed import TransposedWriter, transposed_loads
from inductor_codegen.codegen.cpp.text.dtypes import STORED
from inductor_codegen.codegen.cpp.text.preamble import with_preamble
from inductor_codegen.codegen.cpp.text.stored_bits import without_conversions
from inductor_codegen.ir.attention.form import AttentionKernel
from inductor_codegen.ir.kernel import (
    Access,
    BufferParameter,
    FloatParameter,
    Kernel,
    SizeParameter,
    Vector,
)
from inductor_codegen.ir.scan import ScanKernel
from inductor_codegen.ir.scatter import ScatterKernel

_HEAD = 'extern "C" int32_t {}(const int64_t* given, int64_t share, int64_t shares) {{'


def emit_kernel(kernel: Kernel) -> str:
    """The C++ function of one kernel; ``with_preamble`` makes a file of it."""
    if isinstance(kernel, AttentionKernel):
        return emit_attention(kernel, _HEAD.format(kernel.name), _parameters(kernel))
    if isinstance(kernel, ScatterKernel):
        return emit_scatter(kernel, _HEAD.format(kernel.name), _parameters(kernel))
    if isinstance(kernel, ScanKernel):
        return emit_scan(kernel, _HEAD.format(kernel.name), _parameters(kernel))
    kernel = with_called_functions(with_plain_roundings(without_conversions(kernel)))
    writer = _writer_of(kernel)
    lines = [
        *(f"// {comment}" for comment in kernel.comments),
        _HEAD.format(kernel.name),
    ]
    lines += [f"  {line}" for line in _parameters(kernel)]
    if writer.checked:
        lines.append("  int32_t bad = 0;")
    body = writer.write()
    lines += [f"  {line}" for line in (*writer.names.declarations(), *writer.arrays)]
    lines += body
    lines += ["  return bad;" if writer.checked else "  return 0;", "}"]
    return "\n".join(lines) + "\n"


def _writer_of(kernel: Kernel) -> RowWriter | LaneWriter:
    if kernel.vector is Vector.OUTER:
        return LaneWriter(kernel)
    across = transposed_loads(kernel)
    if across is not None:
        return TransposedWriter(kernel, *across)
    return SliceWriter(kernel) if sharing_of(kernel) is Sharing.KERNEL else RowWriter(kernel)


def emit_source(kernels: Iterable[Kernel]) -> str:
    """A whole C++ file of kernels."""
    return with_preamble([*map(emit_kernel, kernels)])


def _parameters(kernel: Kernel) -> list[str]:
    """Statements that give the parameters their names."""
    lines = []
    for position, parameter in enumerate(kernel.parameters):
        word = f"given[{position}]"
        match parameter:
            case BufferParameter(name, dtype, access):
                kind = f"{'const ' if access is Access.READ else ''}{STORED[dtype]}*"
                lines.append(f"{kind} const {name} = ({kind}){word};")
            case SizeParameter(name):
                lines.append(f"const int64_t {name} = {word};")
            case FloatParameter(name):
                lines.append(f"const double {name} = double_of_bits({word});")
    return lines
