"""16-bit floats that are only moved, or only stored: what a kernel does not compute with is not converted.

    out[i] = half(float(half(x)))      ->   out[i] = x            a store rounds by itself
    out[i] = if(guards; in[i]; 0)      ->   the same, on the 16 bits as they are

The bits are numbers of the dtype ``uint16``, which no graph has.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from inductor_codegen.codegen.cpp.text.dtypes import BITS
from inductor_codegen.ir.kernel import Kernel, Pass, Store
from inductor_codegen.ir.scalar import Apply, Constant, Guarded, Load, Scalar, ScalarBuilder
from inductor_codegen.ir.traverse import postorder

HALVES = (torch.float16, torch.bfloat16)


def without_conversions(kernel: Kernel) -> Kernel:
    """The kernel with stores of 16-bit floats that convert at most once."""
    dtypes = {buffer.name: buffer.dtype for buffer in kernel.buffers}
    if not any(dtype in HALVES for dtype in dtypes.values()):
        return kernel
    make = ScalarBuilder()
    passes = tuple(
        Pass(
            tuple(_stored(s, dtypes, make) if isinstance(s, Store) else s for s in step.points),
            tuple(_stored(s, dtypes, make) for s in step.row),
        )
        for step in kernel.passes
    )
    return replace(kernel, passes=passes)


def _stored(store: Store, dtypes: dict[str, torch.dtype], make: ScalarBuilder) -> Store:
    value, dtype = store.value, dtypes[store.buffer]
    if dtype not in HALVES or value.dtype != dtype:
        return store
    if isinstance(value, Apply) and value.op == "convert_dtype" and value.args[0].dtype.is_floating_point:
        return replace(store, value=value.args[0])
    if not _is_moved(value):
        return store
    return replace(store, value=_bits(value, make))


def _is_moved(value: Scalar) -> bool:
    """Whether nothing but loads, numbers and choices between them makes the value."""
    pending = [value]
    seen: set[Scalar] = set()
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        match node:
            case Guarded(_, body, other):
                pending += [body, other]
            case Apply(op="where", args=(_, body, other)) if body.dtype == other.dtype == value.dtype:
                pending += [body, other]
            case Load() | Constant() if node.dtype == value.dtype:
                continue
            case _:
                return False
    return True


def _bits(value: Scalar, make: ScalarBuilder) -> Scalar:
    done: dict[Scalar, Scalar] = {}
    for node in postorder([value]):
        if node.dtype != value.dtype:
            continue
        match node:
            case Load(buffer, index):
                done[node] = make.load(buffer, index, BITS)
            case Constant(number, dtype):
                bits = torch.tensor(number, dtype=dtype).view(torch.int16).item()
                done[node] = make.constant(int(bits) & 0xFFFF, BITS)
            case Guarded(guards, body, other) if body in done and other in done:
                done[node] = make.guarded(guards, done[body], done[other])
            case Apply("where", (condition, body, other)) if body in done and other in done:
                done[node] = make.apply("where", (condition, done[body], done[other]), BITS)
    return done[value]
