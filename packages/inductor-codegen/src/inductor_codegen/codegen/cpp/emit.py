"""Kernels as C++ functions: OpenMP over rows, one SIMD loop in each pass, no header."""

from __future__ import annotations

from collections.abc import Iterable

from inductor_codegen.codegen.cpp.dtypes import STORED
from inductor_codegen.codegen.cpp.lanes import LaneWriter
from inductor_codegen.codegen.cpp.preamble import PREAMBLE
from inductor_codegen.codegen.cpp.rows import RowWriter
from inductor_codegen.ir.kernel import (
    Access,
    BufferParameter,
    FloatParameter,
    Kernel,
    Parameter,
    SizeParameter,
    Vector,
)


def emit_kernel(kernel: Kernel) -> str:
    """The C++ function of one kernel; it needs ``PREAMBLE`` before it."""
    writer = LaneWriter(kernel) if kernel.vector is Vector.OUTER else RowWriter(kernel)
    lines = [*(f"// {comment}" for comment in kernel.comments), f'extern "C" {signature(kernel)} {{']
    if writer.checked:
        lines.append("  int32_t bad = 0;")
    body = writer.write()
    lines += [f"  {line}" for line in writer.names.declarations()]
    lines += body
    lines += ["  return bad;" if writer.checked else "  return 0;", "}"]
    return "\n".join(lines) + "\n"


def emit_source(kernels: Iterable[Kernel]) -> str:
    """A whole C++ file of kernels."""
    return "\n".join([PREAMBLE, *map(emit_kernel, kernels)])


def parameter_text(parameter: Parameter) -> str:
    """One parameter of the C++ signature."""
    match parameter:
        case BufferParameter(name, dtype, access):
            const = "const " if access is Access.READ else ""
            return f"{const}{STORED[dtype]}* {name}"
        case SizeParameter(name):
            return f"int64_t {name}"
        case FloatParameter(name):
            return f"double {name}"


def signature(kernel: Kernel) -> str:
    """The C++ declaration of a kernel, without ``extern "C"``."""
    listed = ", ".join([*map(parameter_text, kernel.parameters), "int64_t threads"])
    return f"int32_t {kernel.name}({listed})"
