"""How many rows and points one program of a kernel takes, and with how many warps, chosen by measuring."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.cache import ArtifactStore
from inductor_codegen.codegen.triton.launch.kernels import (
    POINTERS_ALIGNED,
    SIZES_ALIGNED,
    KernelLoader,
    KernelRecord,
)
from inductor_codegen.codegen.triton.launch.sizes import Launch
from inductor_codegen.ir.gpu.blocks import holds_rows, point_loops, reduces, row_loops
from inductor_codegen.ir.kernel import FloatParameter, Kernel, SizeParameter, extent_product
from inductor_codegen.ir.program import Buffer, Program, RunKernel
from inductor_codegen.ir.scalar import loaded_scalars
from inductor_codegen.ir.traverse import indices_of, postorder, roots_of, statement_indices, statements_of
from inductor_codegen.native.launch_classes import LaunchClass, bits
from inductor_codegen.native.parallel_kernels import begin_launches
from inductor_codegen.native.tuning.clock import Launched, Queue, milliseconds, tensor_sets
from inductor_codegen.native.tuning.memory import Measured, can_measure, logger, unseen
from inductor_codegen.temporary import temporary_folder

_TRAITS = POINTERS_ALIGNED | SIZES_ALIGNED
_FILE = "kernels.py"
_LEAST_GAIN = 0.03
_SMALL = 1 << 16
"""Points of a kernel below which nothing is to be gained: it takes as long as its launch."""
_WARP = 32
_PER_THREAD = (1, 128)
"""Elements of a block that a thread has, from and to."""


@dataclass(frozen=True, slots=True)
class _Subject:
    """A kernel by its number, the step that runs it, and the bits of its rows and points."""

    number: int
    kernel: Kernel
    step: RunKernel
    rows: int
    points: int


def launches_to_try(record: KernelRecord, kernel: Kernel, rows: int, points: int) -> list[Launch]:
    """Launches for ``2**rows`` rows of ``2**points`` points, that of the rules first."""
    usual, whole = record.launch(rows, points), 1 << rows
    if record.windows or record.totals:  # their registers are counted
        return [usual]
    if record.tiled:
        found = list(_strips(whole, 1 << points) if record.strips else _tiles(whole, 1 << points))
    elif reduces(kernel):
        found = list(_blocks_of_rows(usual, whole, holds=holds_rows(kernel)))
    else:
        found = [
            Launch(-(-whole // block), block, 1, warps)
            for block in (256, 512, 1024, 2048, 4096)
            for warps in (2, 4, 8)
        ]
    fitting = [one for one in found if one.rows <= whole and _is_busy(one)]
    return list(dict.fromkeys([usual, *fitting]))


def _tiles(rows: int, points: int) -> Iterator[Launch]:
    for block, held, warps in itertools.product((16, 32, 64, 128), (32, 64, 128, 256), (4, 8)):
        yield Launch(-(-rows // block), block, held, warps, -(-points // held))


def _strips(rows: int, points: int) -> Iterator[Launch]:
    for block, held, warps in itertools.product((1, 2, 4), (256, 512, 1024, 2048, 4096), (2, 4, 8)):
        yield Launch(-(-rows // block), block, held, warps, -(-points // held))


def _blocks_of_rows(usual: Launch, rows: int, *, holds: bool) -> Iterator[Launch]:
    """Launches of a reduction, whose programs have all points of a row at once if they ``hold`` them."""
    lengths = (
        [usual.points] if holds else [usual.points // 4, usual.points // 2, usual.points, usual.points * 2]
    )
    blocks = [usual.rows // 4, usual.rows // 2, usual.rows, usual.rows * 2, usual.rows * 4]
    for block, length, warps in itertools.product(blocks, lengths, (2, 4, 8, 16)):
        if block > 0 and length >= 16:
            yield Launch(-(-rows // block), block, length, warps)


def _is_busy(launch: Launch) -> bool:
    least, most = _PER_THREAD
    return least <= launch.rows * launch.points / (launch.warps * _WARP) <= most


def tuned_records(
    program: Program,
    kernels: Sequence[Kernel],
    records: Sequence[KernelRecord],
    text: str,
    device: torch.device,
    store: ArtifactStore,
) -> list[KernelRecord]:
    """The records with the launches that were the fastest, of kernels that are always launched for the same sizes."""
    found = list(records)
    if not can_measure(device):
        return found
    measured = Measured(device, store)
    subjects = {one.kernel.name: one for one in _subjects(program, kernels, records)}
    buffers = program.buffers()
    race = _Race(list(subjects.values()), records, text, buffers, device)
    with unseen(), race:
        for one in subjects.values():
            told = f"{one.kernel.name} {one.rows} {one.points}"
            data = measured.choice("launch", told, lambda one=one: race.run(one))["launch"]  # type: ignore[misc]
            if data is not None:
                chosen = Launch.from_data(data)
                found[one.number] = replace(found[one.number], tuned=(one.rows, one.points, chosen))
    return found


def _subjects(
    program: Program, kernels: Sequence[Kernel], records: Sequence[KernelRecord]
) -> Iterator[_Subject]:
    numbers = {kernel.name: number for number, kernel in enumerate(kernels)}
    for step in program.steps:
        if not isinstance(step, RunKernel) or step.kernel not in numbers:
            continue
        number = numbers[step.kernel]
        kernel = kernels[number]
        if type(kernel) is not Kernel or records[number].fixed is not None or _looks_up(kernel):
            continue
        if any(isinstance(parameter, SizeParameter) for parameter in kernel.parameters):
            continue
        rows, points = (extent_product(loops(kernel)) for loops in (row_loops, point_loops))
        if not isinstance(rows, int) or not isinstance(points, int) or rows * points < _SMALL:
            continue
        if len(records[number].functions(bits(rows), bits(points))[2]) == 1:  # not split
            yield _Subject(number, kernel, step, bits(rows), bits(points))


def _looks_up(kernel: Kernel) -> bool:
    """Whether an index comes from data, which a measurement does not have."""
    statements = list(statements_of(kernel.passes))
    indices = [index for statement in statements for index in statement_indices(statement)]
    nodes = postorder(root for statement in statements for root in roots_of(statement))
    indices += [index for node in nodes for index in indices_of(node)]
    return any(any(loaded_scalars(index)) for index in indices)


class _Race:
    """Launches of the kernels of one module against each other; the module is written and compiled when the first is
    asked for."""

    def __init__(
        self,
        subjects: Sequence[_Subject],
        records: Sequence[KernelRecord],
        text: str,
        buffers: dict[str, Buffer],
        device: torch.device,
    ) -> None:
        self._subjects, self._text, self._buffers, self._device = subjects, text, buffers, device
        self._tried: dict[str, list[int]] = {}
        self._records: list[KernelRecord] = []
        for one in subjects:
            record = records[one.number]
            tried = launches_to_try(record, one.kernel, one.rows, one.points)
            first = len(self._records)
            self._records += [replace(record, tuned=(one.rows, one.points, launch)) for launch in tried]
            self._tried[one.kernel.name] = list(range(first, len(self._records)))
        self._folder: Any = None
        self._loader: KernelLoader | None = None

    def __enter__(self) -> _Race:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._folder is not None:
            self._folder.__exit__(*exception)

    def run(self, subject: _Subject) -> Any:
        """The launch that wins, and the times, as JSON data."""
        try:
            return self._compared(subject, self._ready())
        except Exception as error:  # the rules' choice works
            logger.warning("a kernel is not tuned: %s", error)
            return {"launch": None}

    def _ready(self) -> KernelLoader:
        if self._loader is None:
            self._folder = temporary_folder()
            folder = self._folder.__enter__()
            folder.write(_FILE, self._text.encode())
            path = folder.path / _FILE
            launches = [
                LaunchClass(number, one.rows, one.points, _TRAITS)
                for one in self._subjects
                for number in self._tried[one.kernel.name]
            ]
            with begin_launches(self._records, launches, self._text, str(path), self._device) as batch:
                batch.wait()
            self._loader = KernelLoader(path, tuple(self._records), self._device.index or 0)
        return self._loader

    def _compared(self, subject: _Subject, loader: KernelLoader) -> Any:
        sets = tensor_sets([self._buffers[name] for name in subject.step.buffers], self._device)
        pointers = [[tensors[name] for name in subject.step.buffers] for tensors in sets]
        queues: dict[int, Queue] = {}
        times: dict[int, float] = {}
        for number in self._tried[subject.kernel.name]:
            try:
                queue = self._queue(subject, loader, number, pointers)
                times[number] = milliseconds(queue, self._device, 8, 3)
                queues[number] = queue
            except Exception as error:
                logger.info("a launch of %s is left out: %s", subject.kernel.name, error)
        usual = self._tried[subject.kernel.name][0]
        if usual not in times:
            return {"launch": None}
        close = sorted(times, key=lambda number: times[number])[:3]
        for _ in range(3):
            for number in {usual, *close}:
                times[number] = min(times[number], milliseconds(queues[number], self._device, 16, 3))
        best = min(close, key=lambda number: times[number])
        wins = times[best] < times[usual] * (1 - _LEAST_GAIN)
        tuned = self._records[best].tuned
        assert tuned is not None
        logger.info(
            "%s: %.4f ms by rule, %.4f ms %s", subject.kernel.name, times[usual], times[best], tuned[2]
        )
        launch = tuned[2].to_data() if wins else None
        return {"launch": launch, "by_rule": times[usual], "measured": times[best]}

    def _queue(
        self, subject: _Subject, loader: KernelLoader, number: int, pointers: list[list[torch.Tensor]]
    ) -> Callable[[int], None]:
        kernel = subject.kernel
        rows, points = (int(extent_product(loops(kernel))) for loops in (row_loops, point_loops))  # type: ignore[arg-type]
        floats = sum(isinstance(parameter, FloatParameter) for parameter in kernel.parameters)
        function = loader(number, subject.rows, subject.points, _TRAITS)
        return Launched(function, rows, points, pointers, (), floats)
