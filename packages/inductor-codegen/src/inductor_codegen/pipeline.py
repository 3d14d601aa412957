"""The stages of code generation, from a graph to a program and from a program's kernels to C++."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import torch
from torch.fx import GraphModule

from fx_interface.events import span
from inductor_codegen.codegen.cpp.emit import emit_kernel
from inductor_codegen.codegen.cpp.text.preamble import with_preamble
from inductor_codegen.codegen.wrapper.labels import named_by_lines
from inductor_codegen.errors import unsupported
from inductor_codegen.ir.program import Program, RunKernel
from inductor_codegen.lower.chosen_layouts import Layouts
from inductor_codegen.lower.images.channels_last import choose_layouts
from inductor_codegen.lower.lowering import lower
from inductor_codegen.schedule.fusion.grouping import group_values
from inductor_codegen.schedule.programs.assemble import Built, assemble

if TYPE_CHECKING:
    from inductor_codegen.schedule.products.build import Choose

SPLIT_FROM = 8192
"""Characters of kernels from which compiling two files at once is faster than one."""


def plan(
    graph_module: GraphModule,
    layouts: Layouts | None = None,
    *,
    debug: bool = False,
    built: Built | None = None,
    choose: Choose | None = None,
) -> Program:
    """The program of a graph in dialect ``prims``, with the ``layouts`` chosen for it before or now; with ``debug``
    kernels have names for people. ``built``: see ``assemble``; ``choose``: which matrix products are kernels.
    UnsupportedProgramError (IND1xx) if it cannot be compiled."""
    with span("lower", graph=graph_module):
        lowered, env = lower(graph_module, choose_layouts(graph_module) if layouts is None else layouts)
    rewrite = None
    if choose is not None:
        from inductor_codegen.schedule.products.build import with_products  # asked for by few

        rewrite = functools.partial(with_products, choose)
    with span("schedule", graph=graph_module) as event:
        grouping = group_values(lowered)
        program = assemble(lowered, grouping, env, built, rewrite)
        program = named_by_lines(program) if debug else program
        event.note(program=program)
    return program


def device_of(program: Program) -> torch.device:
    """The one GPU that a program uses, or the CPU. Besides a GPU's kernels some may run on the CPU, and library calls
    may read from both."""
    buffers = program.buffers()
    devices = {buffer.device for buffer in buffers.values()}
    gpus = {device for device in devices if device.type == "cuda"}
    read = [
        {buffers[name].device for name in step.buffers}
        for step in program.steps
        if isinstance(step, RunKernel)
    ]
    if len(gpus) > 1 or devices - gpus - {torch.device("cpu")} or any(len(found) > 1 for found in read):
        named = ", ".join(sorted(map(str, devices)))
        raise unsupported("IND105", f"the graph's tensors are on {named}", None)
    return gpus.pop() if gpus else torch.device("cpu")


def kernel_sources(program: Program) -> tuple[str, ...]:
    """C++ files that together hold all kernels of a program for the CPU; many kernels are split for two processors."""
    with span("kernels", program=program) as event:
        named = {kernel.name: emit_kernel(kernel) for kernel in program.kernels}
        event.note(texts=named)
    texts = sorted(named.values(), key=lambda text: (-len(text), text))
    count = 2 if sum(map(len, texts)) > SPLIT_FROM else 1
    files: list[list[str]] = [[] for _ in range(count)]
    for text in texts:
        min(files, key=lambda file: sum(map(len, file))).append(text)
    return tuple(with_preamble(file) for file in files if file)
