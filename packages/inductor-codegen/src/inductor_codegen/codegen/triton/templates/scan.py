"""The text of running totals."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from inductor_codegen.codegen.triton.formulas import TYPES
from inductor_codegen.ir.gpu.scan import GpuScanForm, GpuScanKernel
from inductor_codegen.ir.scatter import SOURCE, TARGET

_JOINED = {"sum": ("_plus", "0", "{0} + {1}"), "prod": ("_multiply", "1", "{0} * {1}")}
"""The function that joins two neighbours, what changes nothing, and how a total is joined with one before it."""


def scan_source(kernel: GpuScanKernel) -> str:
    """The text of the ``@triton.jit`` function."""
    form: GpuScanForm = kernel.form
    rows, points = form.block
    names = ", ".join([SOURCE, TARGET, "XBLOCK: tl.constexpr", "RBLOCK: tl.constexpr"])
    length = form.sizes[-1]
    lines = [
        *(f"# {comment}" for comment in kernel.comments),
        f"row = tl.program_id(0).to(tl.int64) * {rows} + tl.arange(0, {rows})[:, None]",
        f"inside = row < {form.rows}",
        *_bases(form),
    ]
    if length <= points:
        lines += [f"point = tl.arange(0, {points})[None, :]", *_block(form, "")]
    else:
        computing = TYPES[_computing(form.dtype)]
        _, neutral, joined = _JOINED[form.kind]
        lines += [
            f"before = tl.full([{rows}, 1], {neutral}, {computing})",
            f"for start in range(0, {length}, {points}):",
            f"    point = start + tl.arange(0, {points})[None, :]",
            *(f"    {line}" for line in _block(form, joined.format("before", "totals"))),
            f"    last = tl.arange(0, {points})[None, :] == {points - 1}",
            "    before = tl.sum(tl.where(last, totals, 0), 1)[:, None]",
        ]
    body = "\n".join(f"    {line}" for line in lines)
    return f"@triton.jit\ndef {kernel.name}({names}):\n{body}\n"


def _block(form: GpuScanForm, joined: str) -> list[str]:
    """Load a block of points, add up, store."""
    function, neutral, _ = _JOINED[form.kind]
    computing = _computing(form.dtype)
    loaded = f"tl.load({SOURCE} + (read + {_at(form.source)}), mask, other={neutral})"
    if form.source_dtype == torch.bool:
        loaded = f"({loaded} != 0)"
    lines = [
        f"mask = inside & (point < {form.sizes[-1]})",
        f"value = {loaded}.to({TYPES[computing]})",
        f"totals = tl.associative_scan(value, 1, {function})",
    ]
    if joined:
        lines.append(f"totals = {joined}")
    stored = f"totals.to({TYPES[form.dtype]})"
    return [*lines, f"tl.store({TARGET} + (written + {_at(form.target)}), {stored}, mask)"]


def _bases(form: GpuScanForm) -> list[str]:
    """Where each row begins."""
    lines, below = [], 1
    for place in reversed(range(len(form.sizes) - 1)):
        text = "row" if below == 1 else f"(row // {below})"
        lines.append(f"row{place} = {text if place == 0 else f'{text} % {form.sizes[place]}'}")
        below *= form.sizes[place]
    return [
        *lines,
        f"read = {_sum_of(form.source[:-1])}",
        f"written = {_sum_of(form.target[:-1])}",
    ]


def _sum_of(strides: Sequence[int]) -> str:
    return " + ".join(f"row{place} * {stride}" for place, stride in enumerate(strides)) or "row * 0"


def _at(strides: Sequence[int]) -> str:
    return "point" if strides[-1] == 1 else f"point.to(tl.int64) * {strides[-1]}"


def _computing(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
