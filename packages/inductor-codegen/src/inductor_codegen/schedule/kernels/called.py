"""Kernels in the place of a library call, and those that fill what such a call adds to: with zeros, or a copy."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import Expr, IntLike, product, symbol
from inductor_codegen.ir.index import Index, LoopVar, as_index
from inductor_codegen.ir.kernel import (
    Access,
    BufferParameter,
    Kernel,
    Parameter,
    Pass,
    SizeParameter,
    Store,
    Vector,
)
from inductor_codegen.ir.program import RunKernel, Step
from inductor_codegen.ir.scalar import ScalarBuilder
from inductor_codegen.ir.scatter import SOURCE, TARGET
from inductor_codegen.lower.layouts import is_dense
from inductor_codegen.lower.values import Placed, Value
from inductor_codegen.lower.views import Layout, Sizes

_COPY = "copy_"


@dataclass(frozen=True, slots=True)
class Called:
    """A kernel, and what it is given: tensors and sizes in the order of its parameters. ``between``: a tensor that is
    none of the graph's, which it is the first to write."""

    kernel: Kernel
    buffers: tuple[Placed | Value, ...]
    sizes: tuple[IntLike, ...]
    between: Value | None = None


def is_idle(step: Step) -> bool:
    """Whether it copies memory to where it is."""
    return isinstance(step, RunKernel) and step.kernel.startswith(_COPY) and len(set(step.buffers)) == 1


def copy(base: Placed | Value, result: Value, dtype: torch.dtype | None = None) -> Called:
    """``result = base``, which has ``dtype`` if that is not the result's own."""
    make = ScalarBuilder()
    loops = _loops_over(result)
    held = result.dtype if dtype is None else dtype
    if base.layout.strides == result.strides and is_dense(result.sizes, result.strides):
        what, loops = _COPY if held == result.dtype else "converted_", (LoopVar("i0", product(result.sizes)),)
        read = written = as_index(loops[0])
    else:
        what = "transposed_"
        point = [as_index(loop) for loop in loops]
        read = Layout(result.sizes, base.layout.strides, 0).address(point)
        written = Layout(result.sizes, result.strides, 0).address(point)
    value = make.convert(make.load(SOURCE, read, held), result.dtype)
    strides = (*base.layout.strides, *result.strides)
    return _storing(
        what, Store(TARGET, written, value), loops, (base, result), strides, (held, result.dtype), read
    )


def zeros(result: Value) -> Called:
    """``result = 0``."""
    zero = ScalarBuilder().constant(0, result.dtype)
    loops = _loops_over(result)
    if is_dense(result.sizes, result.strides):
        loops = (LoopVar("i0", product(result.sizes)),)
        written = as_index(loops[0])
    else:
        written = Layout(result.sizes, result.strides, 0).address([as_index(loop) for loop in loops])
    return _storing("zeros_", Store(TARGET, written, zero), loops, (result,), result.strides, (result.dtype,))


def _loops_over(value: Value) -> tuple[LoopVar, ...]:
    return tuple(LoopVar(f"i{place}", size) for place, size in enumerate(value.sizes))


def _storing(
    what: str,
    store: Store,
    loops: tuple[LoopVar, ...],
    given: tuple[Placed | Value, ...],
    strides: Sizes,
    dtypes: tuple[torch.dtype, ...],
    read: Index | None = None,
) -> Called:
    accesses = [(SOURCE, Access.READ)] * (len(given) - 1) + [(TARGET, Access.WRITE)]
    buffers = [BufferParameter(name, dtype, way) for (name, way), dtype in zip(accesses, dtypes, strict=True)]
    names = size_names((*(loop.extent for loop in loops), *strides))
    parameters: tuple[Parameter, ...] = (*buffers, *map(SizeParameter, names))
    name = named(what, (store.index, read, loops, parameters))
    passes = (Pass((store,), ()),)
    kernel = Kernel(name, parameters, loops[:-1], loops[-1:], Vector.INNER, passes, (what.rstrip("_"),))
    return Called(kernel, given, tuple(map(symbol, names)))


def size_names(values: Iterable[IntLike]) -> list[str]:
    """The names of the symbols in sizes."""
    found = {atom.name for value in values if isinstance(value, Expr) for atom in value.symbols}
    return sorted(found)


def named(what: str, parts: object) -> str:
    """The name of a kernel: what it is, and a digest of what it is made of."""
    return f"{what}{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}"
