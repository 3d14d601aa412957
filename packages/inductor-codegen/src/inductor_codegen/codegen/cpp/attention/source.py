"""The text of a kernel of attention."""

from __future__ import annotations

from collections.abc import Sequence

from inductor_codegen.codegen.cpp.attention.backward import BackwardWriter
from inductor_codegen.codegen.cpp.attention.forward import ForwardWriter
from inductor_codegen.ir.attention.form import AttentionKernel, Task


def emit_attention(kernel: AttentionKernel, head: str, parameters: Sequence[str]) -> str:
    """The C++ function of a kernel."""
    writer = (ForwardWriter if kernel.form.task is Task.FORWARD else BackwardWriter)(kernel)
    body = writer.write()
    lines = [
        *(f"// {comment}" for comment in kernel.comments),
        head,
        *(f"  {line}" for line in parameters),
        *(f"  {line}" for line in writer.names.declarations()),
        *body,
        "  return bad;",
        "}",
    ]
    return "\n".join(lines) + "\n"
