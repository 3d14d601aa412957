"""One kernel of the loop IR as a Triton function.

Each program of the grid takes ``XBLOCK`` rows (points of the outer loops; of all loops when nothing is reduced) and runs
over the inner loops in blocks of ``RBLOCK`` points, once for every pass. A kept value is computed again.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fx_interface.symbols import IntLike
from inductor_codegen.codegen.triton import reductions
from inductor_codegen.codegen.triton.indices import size_text
from inductor_codegen.codegen.triton.scope import Names, Scope
from inductor_codegen.ir.index import LoopVar
from inductor_codegen.ir.kernel import (
    Accumulate,
    FloatParameter,
    Keep,
    Kernel,
    Pass,
    Store,
    extent_product,
)


def row_loops(kernel: Kernel) -> tuple[LoopVar, ...]:
    """The loops that the grid runs over."""
    return kernel.outer if reduces(kernel) else (*kernel.outer, *kernel.inner)


def reduces(kernel: Kernel) -> bool:
    """Whether the kernel has a loop inside its programs."""
    return any(isinstance(node, Accumulate) for step in kernel.passes for node in step.points) or any(
        step.row for step in kernel.passes
    )


def kernel_source(kernel: Kernel) -> str:
    """The text of the ``@triton.jit`` function, named as the kernel is."""
    parameters = [parameter.name for parameter in kernel.parameters]
    lines = [
        f"def {kernel.name}({', '.join([*parameters, 'XBLOCK: tl.constexpr', 'RBLOCK: tl.constexpr'])}):"
    ]
    body = [f"# {comment}" for comment in kernel.comments]
    rows = row_loops(kernel)
    body += [
        f"xnumel = {size_text(extent_product(rows))}",
        "xindex = tl.program_id(0).to(tl.int64) * XBLOCK + tl.arange(0, XBLOCK)[:, None]",
        "xmask = xindex < xnumel",
        "xzero = tl.zeros([XBLOCK, 1], tl.int64)",
        *_counters("xindex", rows),
    ]
    kept = {node.slot: node.value for step in kernel.passes for node in step.points if isinstance(node, Keep)}
    names = Names()
    row = Scope(names, "xmask", "xzero", {loop: loop.name for loop in rows}, kept, lines=body)
    inner = kernel.inner if reduces(kernel) else ()
    for step in kernel.passes:
        _pass(step, row, inner, body, reduces(kernel))
    return "@triton.jit\n" + "\n".join([*lines, *(f"    {line}" for line in body)]) + "\n"


def _counters(index: str, loops: Sequence[LoopVar]) -> list[str]:
    """The loop variables of a row-major position."""
    lines: list[str] = []
    below: IntLike = 1
    for position, loop in reversed(list(enumerate(loops))):
        text = index if isinstance(below, int) and below == 1 else f"({index} // ({size_text(below)}))"
        lines.append(
            f"{loop.name} = {text}" if position == 0 else f"{loop.name} = {text} % ({size_text(loop.extent)})"
        )
        below = below * loop.extent
    return lines


def _pass(step: Pass, row: Scope, inner: Sequence[LoopVar], body: list[str], loops: bool) -> None:
    if not loops:
        for node in step.points:
            if isinstance(node, Store):
                _store(node, row)
        return
    accumulators = [node for node in step.points if isinstance(node, Accumulate)]
    variables = {**row.variables, **{loop: loop.name for loop in inner}}
    points = Scope(row.names, "mask", "zero", variables, row.kept, outer=row)
    for node in step.points:
        if isinstance(node, Store):
            _store(node, points)
        elif isinstance(node, Accumulate):
            points.value(node.value)
            points.lines += reductions.step(node, points)
    for node in accumulators:
        body += reductions.start(node)
    if any(not isinstance(node, Keep) for node in step.points):
        body += [
            f"rnumel = {size_text(extent_product(tuple(inner)))}",
            "for roffset in range(0, rnumel, RBLOCK):",
        ]
        head = [
            "rindex = roffset + tl.arange(0, RBLOCK)[None, :].to(tl.int64)",
            "mask = xmask & (rindex < rnumel)",
            "zero = tl.zeros([XBLOCK, RBLOCK], tl.int64)",
            *_counters("rindex", inner),
        ]
        body += [f"    {line}" for line in (*head, *points.lines)]
    for node in accumulators:
        body += reductions.finish(node)
    for store in step.row:
        _store(store, row)


def _store(node: Store, scope: Scope) -> None:
    value = scope.value(node.value)
    address = scope.address(node.index)
    text = f"{value}.to(tl.int8)" if node.value.dtype == torch.bool else value
    scope.lines.append(
        f"tl.store({node.buffer} + ({address}), {text} + tl.zeros_like({scope.zero}).to({text_type(node)}), {scope.mask})"
    )


def text_type(node: Store) -> str:
    """The Triton type that a stored block has."""
    from inductor_codegen.codegen.triton.formulas import TYPES

    return "tl.int8" if node.value.dtype == torch.bool else TYPES[node.value.dtype]


def float_parameters(kernel: Kernel) -> list[str]:
    """Names of the kernel's floating-point parameters."""
    return [parameter.name for parameter in kernel.parameters if isinstance(parameter, FloatParameter)]
