"""The launches that a program makes first, told to processes that compile kernels beside this one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from fx_interface.errors import UnbackedSymbolError
from fx_interface.symbols import Expr, IntLike, ShapeEnv
from inductor_codegen.codegen.triton.launch.images import Form
from inductor_codegen.codegen.triton.launch.kernels import (
    POINTERS_ALIGNED,
    SIZES_ALIGNED,
    KernelRecord,
    constants_of,
    form_of,
    options_of,
)
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.ir.program import Program
from inductor_codegen.native.launch_classes import LaunchClass, bits, works_of
from inductor_codegen.toolchain.kernel_processes import Batch, Image, Job, compile_beside, prepare

_WARP = 32


def begin_kernels(
    program: Program,
    kernels: Sequence[Kernel],
    records: Sequence[KernelRecord],
    text: str,
    path: str,
    device: torch.device,
    env: ShapeEnv,
) -> KernelBatch:
    """Have the ``kernels`` of a program, which are in the module ``text``, compiled for the sizes seen while compiling
    and for ``device``."""
    return begin_launches(records, launches_of(program, kernels, env), text, path, device)


def begin_launches(
    records: Sequence[KernelRecord],
    launches: Iterable[LaunchClass],
    text: str,
    path: str,
    device: torch.device,
) -> KernelBatch:
    """Have functions of the module ``text`` compiled for these launches."""
    target = target_of(device)
    jobs = (
        {} if target is None else {form: job for launch in launches for form, job in _jobs(records, launch)}
    )
    begun = Batch() if target is None else compile_beside(text, path, list(jobs.values()), target)
    return KernelBatch(begun, list(jobs))


def prepare_kernels(device: torch.device, count: int) -> None:
    """Have processes begin that will compile about ``count`` kernels for ``device``."""
    target = target_of(device)
    if target is not None:
        prepare(count, target)


def target_of(device: torch.device) -> tuple[str, int, int] | None:
    """What Triton compiles for, as it names that; None if processes do not compile for the device."""
    if device.type != "cuda" or torch.version.hip is not None or not torch.cuda.is_available():
        return None
    major, minor = torch.cuda.get_device_capability(device)
    return "cuda", 10 * major + minor, _WARP


class KernelBatch:
    """Kernels that are being compiled; a context, as ``Batch``."""

    def __init__(self, batch: Batch, forms: Sequence[Form]) -> None:
        self._batch, self._forms = batch, forms

    def __enter__(self) -> KernelBatch:
        return self

    def __exit__(self, *_: object) -> None:
        self._batch.__exit__()

    def wait(self) -> dict[Form, Image]:
        """The kernels that were compiled."""
        self._batch.wait()
        return {self._forms[place]: image for place, image in self._batch.images.items()}


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


def _jobs(records: Sequence[KernelRecord], launch: LaunchClass) -> Iterator[tuple[Form, Job]]:
    _, _, functions = records[launch.number].functions(launch.rows, launch.points)
    for record, chosen in functions:
        attributes: list[Any] = [[place, told] for (place,), told in record.attributes(launch.traits).items()]
        job = {
            "function": record.name,
            "kinds": record.types,
            "constants": constants_of(chosen),
            "attributes": attributes,
            "options": options_of(chosen),
        }
        yield form_of(record, chosen, launch.traits), job
