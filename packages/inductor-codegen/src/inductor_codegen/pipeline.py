"""The stages of code generation, from a graph to a program and from a program's kernels to C++."""

from __future__ import annotations

from torch.fx import GraphModule

from inductor_codegen.codegen.cpp.emit import emit_source
from inductor_codegen.ir.program import Program
from inductor_codegen.lower.lowering import lower
from inductor_codegen.schedule.assemble import assemble
from inductor_codegen.schedule.grouping import group_values


def plan(graph_module: GraphModule) -> Program:
    """The program of a graph in dialect ``prims``. UnsupportedProgramError (IND1xx) if it cannot be compiled."""
    lowered, env = lower(graph_module)
    grouping = group_values(lowered)
    return assemble(lowered, grouping, env)


def kernel_source(program: Program) -> str:
    """One C++ file with all kernels of a program for the CPU."""
    return emit_source(program.kernels)
