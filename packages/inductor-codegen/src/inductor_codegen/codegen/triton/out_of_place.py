"""Programs for a GPU: no kernel that loads again what it has stored over works in place.

b = reuse a; kernel(b, b)   ->   b = new; kernel(a, b); free a
kernel(x, x)                ->   t = new; kernel(x, t); copy t into x; free t          where x is an input
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch

from inductor_codegen.ir.gpu.blocks import computes_again
from inductor_codegen.ir.kernel import Access, Kernel
from inductor_codegen.ir.program import (
    Allocate,
    Buffer,
    BufferRef,
    CallExtern,
    Free,
    Program,
    Reuse,
    RunKernel,
    Step,
    Storage,
)


def out_of_place(program: Program) -> Program:
    """The program with memory of its own for every result that may not take over an operand's."""
    kernels = {kernel.name: kernel for kernel in program.kernels}
    if not any(map(computes_again, program.kernels)):
        return program
    buffers = program.buffers()
    before = {step.buffer.name: step.of for step in program.steps if isinstance(step, Reuse)}
    apart: set[str] = set()
    steps: list[Step] = []
    for step in program.steps:
        shared = _shared(step, kernels) if isinstance(step, RunKernel) else []
        if isinstance(step, RunKernel) and shared:
            apart.update(shared)
            steps += _separated(step, kernels[step.kernel], shared, before, buffers)
        else:
            steps.append(step)
    escaping = program.escaping()
    return replace(program, steps=tuple(_allocated(step, apart, escaping) for step in steps))


def _shared(step: RunKernel, kernels: Mapping[str, Kernel]) -> list[str]:
    """The names that the kernel both reads and writes although it may not."""
    kernel = kernels[step.kernel]
    if not computes_again(kernel):
        return []
    pairs = list(zip(step.buffers, kernel.buffers, strict=True))
    read = {name for name, parameter in pairs if parameter.access is not Access.WRITE}
    return [name for name, parameter in pairs if parameter.access is Access.WRITE and name in read]


def _separated(
    step: RunKernel, kernel: Kernel, shared: list[str], before: Mapping[str, str], buffers: dict[str, Buffer]
) -> list[Step]:
    """The step with memory of its own for each of the ``shared`` names; ``before`` are the names taken over."""
    reads = {name: before[name] for name in shared if name in before}
    writes = {name: _fresh(f"{name}_new", buffers) for name in shared if name not in before}
    names = tuple(
        (writes if parameter.access is Access.WRITE else reads).get(name, name)
        for name, parameter in zip(step.buffers, kernel.buffers, strict=True)
    )
    made: list[Step] = [Allocate(replace(buffers[n], name=new), Storage.SCRATCH) for n, new in writes.items()]
    made.append(replace(step, buffers=names))
    for name, new in writes.items():
        arguments = (BufferRef(name), BufferRef(new))
        made += [
            CallExtern(torch.ops.aten.copy_.default, arguments, (), (None,), step.where),
            Free(new),
        ]
    return [*made, *(Free(old) for old in reads.values())]


def _fresh(name: str, taken: Mapping[str, Buffer]) -> str:
    while name in taken:
        name += "_"
    return name


def _allocated(step: Step, apart: set[str], escaping: frozenset[str]) -> Step:
    if not isinstance(step, Reuse) or step.buffer.name not in apart:
        return step
    return Allocate(step.buffer, Storage.TENSOR if step.buffer.name in escaping else Storage.SCRATCH)
