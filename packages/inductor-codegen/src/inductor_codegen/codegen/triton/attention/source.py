"""The text of a kernel of attention."""

from __future__ import annotations

from inductor_codegen.codegen.triton.attention.backward import KeysWriter, QueriesWriter
from inductor_codegen.codegen.triton.attention.forward import ForwardWriter
from inductor_codegen.codegen.triton.attention.tiles import TileWriter
from inductor_codegen.ir.attention.form import AttentionKernel, Task

_WRITERS: dict[Task, type[TileWriter]] = {
    Task.FORWARD: ForwardWriter,
    Task.KEYS: KeysWriter,
    Task.QUERIES: QueriesWriter,
}


def attention_source(kernel: AttentionKernel) -> str:
    """The text of the ``@triton.jit`` function."""
    writer = _WRITERS[kernel.form.task](kernel)
    writer.write()
    return writer.text([parameter.name for parameter in kernel.parameters])
