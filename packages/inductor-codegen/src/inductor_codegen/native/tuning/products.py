"""The tiles of matrix products, chosen by measuring against the library's product and the kernel behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from inductor_codegen.codegen.triton.wrapper import kernels_source
from inductor_codegen.ir.gpu.blocks import point_loops, row_loops
from inductor_codegen.ir.kernel import FloatParameter, Kernel, extent_product
from inductor_codegen.ir.products.form import ProductTiles
from inductor_codegen.ir.program import Buffer, Program, RunKernel
from inductor_codegen.native.launch_classes import LaunchClass, bits
from inductor_codegen.native.parallel_kernels import begin_launches
from inductor_codegen.native.tuning.clock import Launched, Queue, milliseconds, tensor_sets
from inductor_codegen.native.tuning.memory import Measured, can_measure, logger, unseen
from inductor_codegen.schedule.products.build import Joined
from inductor_codegen.schedule.products.places import Place
from inductor_codegen.temporary import temporary_folder

aten = torch.ops.aten
_WRITING = {aten.mm.default: aten.mm.out, aten.bmm.default: aten.bmm.out, aten.addmm.default: aten.addmm.out}
_SHARED = 220 << 10
"""Bytes that the tiles of all stages may take."""
_LEAST_GAIN = 0.03
_TRAITS = POINTERS_ALIGNED | SIZES_ALIGNED
_FILE = "kernels.py"

_TILES = (
    (128, 256, 64, 8, 3),
    (256, 128, 64, 8, 3),
    (128, 128, 64, 8, 3),
    (128, 128, 64, 4, 4),
    (128, 128, 128, 8, 3),
    (64, 256, 64, 8, 4),
    (64, 256, 64, 4, 4),
    (256, 64, 64, 4, 4),
    (128, 64, 64, 4, 4),
    (64, 128, 64, 4, 4),
    (64, 64, 64, 4, 5),
    (64, 64, 128, 4, 4),
    (64, 32, 128, 4, 4),
    (32, 64, 128, 4, 4),
    (32, 128, 128, 4, 3),
    (16, 64, 128, 4, 5),
    (16, 128, 128, 4, 4),
    (16, 32, 256, 4, 4),
)
"""Rows, columns, points between, warps and stages of tiles for 16-bit factors."""


def tiles_for(sizes: tuple[int, int, int, int], itemsize: int) -> list[ProductTiles]:
    """The tiles to try for a product: none that is mostly empty, or that does not fit."""
    _, rows, between, columns = sizes
    found = []
    for tile_rows, tile_columns, depth, warps, stages in _TILES:
        wide = tile_rows > 16 and tile_rows >= 2 * rows, tile_columns > 16 and tile_columns >= 2 * columns
        bytes_held = (tile_rows + tile_columns) * depth * itemsize * stages
        few = rows >= 64 and tile_rows == 16
        if not any(wide) and bytes_held <= _SHARED and depth <= 2 * between and not few:
            found.append(ProductTiles(tile_rows, tile_columns, depth, 8, warps, stages))
    return found


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A kernel to load: its rows and points, and its buffers by name."""

    kernel: Kernel
    buffers: tuple[str, ...]

    @property
    def work(self) -> tuple[int, int]:
        return tuple(int(extent_product(loops(self.kernel))) for loops in (row_loops, point_loops))  # type: ignore[arg-type,return-value]


class ProductChooser:
    """Chooses for the products of programs; what it has measured is kept in the store."""

    def __init__(self, store: ArtifactStore) -> None:
        self._store = store

    def __call__(
        self,
        place: Place,
        joined: Joined,
        step: RunKernel | None,
        kernel: Kernel | None,
        buffers: Mapping[str, Buffer],
    ) -> ProductTiles | None:
        """The fastest tiles; None where the library is at least as fast."""
        device = place.result.device
        if not can_measure(device) or not tiles_for(place.sizes, place.left.dtype.itemsize):
            return None
        text = joined.text + ("" if kernel is None else kernel.name)

        def measure() -> Any:
            try:
                return _Contest(place, joined, step, kernel, buffers, device).run()
            except Exception as error:  # a choice that cannot be made keeps what is known to work
                logger.warning("a matrix product is not tuned: %s", error)
                return {"tiles": None}

        with unseen():
            chosen = Measured(device, self._store).choice("product", text, measure)["tiles"]
        return None if chosen is None else ProductTiles(*map(int, chosen))


class _Contest:
    """One product: the library's call, with what follows it, against kernels."""

    def __init__(
        self,
        place: Place,
        joined: Joined,
        step: RunKernel | None,
        kernel: Kernel | None,
        buffers: Mapping[str, Buffer],
        device: torch.device,
    ) -> None:
        self._place, self._joined, self._device = place, joined, device
        names = [*joined.buffers, *(step.buffers if step else ()), place.result.name]
        names += [one.name for one in (place.left, place.right)]
        self._sets = tensor_sets([buffers[name] for name in names], device)
        self._tiles = tiles_for(place.sizes, place.left.dtype.itemsize)
        self._kernels = [_Kernel(joined.of(tiles), joined.buffers) for tiles in self._tiles]
        if step is not None and kernel is not None:
            self._kernels.append(_Kernel(kernel, step.buffers))
        self._has_step = step is not None

    def run(self) -> Any:
        """The tiles that win, and the times, as JSON data."""
        with temporary_folder() as folder:
            kernels = tuple(one.kernel for one in self._kernels)
            text = kernels_source(Program((), kernels, (), ()))
            folder.write(_FILE, text.encode())
            records = tuple(map(KernelRecord.of, kernels))
            path = folder.path / _FILE
            launches = list(self._launches())
            with begin_launches(records, launches, text, str(path), self._device) as batch:
                batch.wait()
            loader = KernelLoader(path, records, self._device.index or 0)
            return self._compared(loader, launches)

    def _launches(self) -> Iterator[LaunchClass]:
        for number, one in enumerate(self._kernels):
            rows, points = one.work
            yield LaunchClass(number, bits(rows), bits(points), _TRAITS)

    def _compared(self, loader: KernelLoader, launches: Sequence[LaunchClass]) -> Any:
        behind = [self._queue(loader, launches[-1])] if self._has_step else []

        def library(number: int) -> None:
            self._call(number)
            for queue in behind:
                queue(number)

        found: list[tuple[float, int, Queue]] = []
        for number in range(len(self._tiles)):
            try:
                queue = self._queue(loader, launches[number])
                found.append((milliseconds(queue, self._device, 8, 3), number, queue))
            except Exception as error:  # too much shared memory, or what Triton cannot compile
                logger.info("tiles %s of a matrix product are left out: %s", self._tiles[number], error)
        before = milliseconds(library, self._device, 8, 3)
        close = sorted(found, key=lambda one: one[0])[:3]
        again: list[list[float]] = [[] for _ in close]
        times = []
        for _ in range(3):
            times.append(milliseconds(library, self._device, 16, 3))
            for place, (_, _, queue) in enumerate(close):
                again[place].append(milliseconds(queue, self._device, 16, 3))
        before = min(before, *times)
        best = min(((min(own), close[place][1]) for place, own in enumerate(again)), default=(before, -1))
        wins = best[0] < before * (1 - _LEAST_GAIN)
        tiles = self._tiles[best[1]] if wins else None
        logger.info(
            "product %s: library %.4f ms, kernel %.4f ms, %s", self._place.sizes, before, best[0], tiles
        )
        chosen = (
            None
            if tiles is None
            else [tiles.rows, tiles.columns, tiles.between, tiles.group, tiles.warps, tiles.stages]
        )
        return {"tiles": chosen, "library": before, "kernel": best[0]}

    def _queue(self, loader: KernelLoader, launch: LaunchClass) -> Queue:
        one = self._kernels[launch.number]
        rows, points = one.work
        floats = sum(isinstance(parameter, FloatParameter) for parameter in one.kernel.parameters)
        pointers = [[tensors[name] for name in one.buffers] for tensors in self._sets]
        return Launched(loader(*launch), rows, points, pointers, (), floats)

    def _call(self, number: int) -> None:
        tensors, place = self._sets[number % len(self._sets)], self._place
        given = [tensors[one.name] for one in (place.added, place.left, place.right) if one is not None]
        _WRITING[place.call.op](*given, out=tensors[place.result.name])
