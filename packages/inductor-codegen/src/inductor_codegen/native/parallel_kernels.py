"""The launches that a program makes first, told to processes that compile kernels beside this one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from fx_interface.errors import UnbackedSymbolError
from fx_interface.symbols import Expr, IntLike, ShapeEnv
from inductor_codegen.codegen.triton.launch.kernels import (
    POINTERS_ALIGNED,
    SIZES_ALIGNED,
    KernelRecord,
    constants_of,
    options_of,
)
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.ir.program import Program
from inductor_codegen.native.launch_classes import LaunchClass, bits, works_of
from inductor_codegen.toolchain.kernel_processes import Batch, Job, compile_beside

_WARP = 32


def begin_kernels(
    program: Program,
    kernels: Sequence[Kernel],
    records: Sequence[KernelRecord],
    text: str,
    path: str,
    device: torch.device,
    env: ShapeEnv,
) -> Batch:
    """Have the ``kernels`` of a program, which are in the module ``text``, compiled for the sizes seen while compiling
    and for ``device``."""
    return begin_launches(records, launches_of(program, kernels, env), text, path, device)


def begin_launches(
    records: Sequence[KernelRecord],
    launches: Iterable[LaunchClass],
    text: str,
    path: str,
    device: torch.device,
) -> Batch:
    """Have functions of the module ``text`` compiled for these launches."""
    if torch.version.hip is not None or not torch.cuda.is_available():
        return Batch()
    jobs = {str(job): job for launch in launches for job in _jobs(records, launch)}
    major, minor = torch.cuda.get_device_capability(device)
    return compile_beside(text, path, list(jobs.values()), ("cuda", 10 * major + minor, _WARP))


def launches_of(program: Program, kernels: Sequence[Kernel], env: ShapeEnv) -> Iterator[LaunchClass]:
    """The launches that a program makes with the sizes seen while compiling."""
    for work in dict.fromkeys(works_of(program, kernels)):
        try:
            rows, points, *sizes = (_hint(value, env) for value in (work.rows, work.points, *work.sizes))
        except (UnbackedSymbolError, KeyError):  # data tell the size
            continue
        aligned = SIZES_ALIGNED if all(size % 16 == 0 for size in sizes) else 0
        if rows > 0:
            yield LaunchClass(work.number, bits(rows), bits(points), POINTERS_ALIGNED | aligned)


def _hint(value: IntLike, env: ShapeEnv) -> int:
    return env.hint(value) if isinstance(value, Expr) else value


def _jobs(records: Sequence[KernelRecord], launch: LaunchClass) -> Iterator[Job]:
    _, _, functions = records[launch.number].functions(launch.rows, launch.points)
    for record, chosen in functions:
        attributes: list[Any] = [[place, told] for (place,), told in record.attributes(launch.traits).items()]
        yield {
            "function": record.name,
            "kinds": record.types,
            "constants": constants_of(chosen),
            "attributes": attributes,
            "options": options_of(chosen),
        }
