"""Kernels of a stored module, compiled for a class of sizes and loaded onto the GPU at their first launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.cache import content_key, process_store
from inductor_codegen.codegen.triton.launch.images import Form, load_image
from inductor_codegen.codegen.triton.launch.sizes import OPTIONS, Launch, choose, choose_tile, joining
from inductor_codegen.codegen.triton.split import JOINED, PARTS, cells_of
from inductor_codegen.ir.attention.form import AttentionKernel
from inductor_codegen.ir.attention.tiles import gpu_tiles
from inductor_codegen.ir.gpu.blocks import (
    count_totals,
    loads_apart,
    point_loops,
    reduces,
    takes_strips,
    window_points,
)
from inductor_codegen.ir.gpu.scan import WARPS, GpuScanKernel
from inductor_codegen.ir.kernel import BufferParameter, Kernel, SizeParameter, Vector
from inductor_codegen.ir.products.form import ProductKernel
from inductor_codegen.toolchain.kernel_processes import Image
from inductor_codegen.toolchain.kernel_worker import LazyModule, compile_function

_POINTERS: dict[torch.dtype, str] = {
    torch.float64: "*fp64",
    torch.float32: "*fp32",
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.int64: "*i64",
    torch.int32: "*i32",
    torch.int16: "*i16",
    torch.int8: "*i8",
    torch.uint8: "*u8",
    torch.bool: "*i1",
}
POINTERS_ALIGNED, SIZES_ALIGNED = 1, 2
"""What a launch may take for granted: every pointer, every size is a multiple of 16 (as in the runtime's ``gpu.c``)."""


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """What compiling a kernel needs besides its text. ``types`` are its parameters' types as Triton writes them,
    ``cells`` those of the arrays between its two functions, if it can be split. ``tiled``: pointwise, in tiles.
    ``fixed``: warps and stages of a kernel that says itself what a program does. ``tuned``: bits of rows and points,
    and the launch that was measured to be the fastest for these. ``strips``: tiles of one row; ``windows``: how
    many points a row of a kernel that sums over windows has, 0 for others. ``totals``: how many taps a reduction sums.
    ``apart``: neighbouring points load what does not lie side by side.
    """

    name: str
    types: tuple[str, ...]
    reduces: bool
    along_rows: bool
    cells: tuple[str, ...] = ()
    tiled: bool = False
    fixed: tuple[int, int] | None = None
    tuned: tuple[int, int, Launch] | None = None
    strips: bool = False
    windows: int = 0
    totals: int = 0
    apart: bool = False

    @staticmethod
    def of(kernel: Kernel) -> KernelRecord:
        """The record of a kernel."""
        types = tuple(_type_of(parameter) for parameter in kernel.parameters)
        cells = tuple(_POINTERS[dtype] for dtype in cells_of(kernel))
        if isinstance(kernel, AttentionKernel):
            tiles = gpu_tiles(kernel.form)
            assert tiles is not None
            return KernelRecord(kernel.name, types, False, False, fixed=(tiles.warps, tiles.stages))
        if isinstance(kernel, ProductKernel):
            form = kernel.form
            return KernelRecord(kernel.name, types, False, False, fixed=(form.tiles.warps, form.tiles.stages))
        if isinstance(kernel, GpuScanKernel):
            return KernelRecord(kernel.name, types, False, False, fixed=(WARPS, 0))
        reducing = reduces(kernel)
        tiled = not reducing and bool(point_loops(kernel))
        along_rows, strips = kernel.vector is Vector.OUTER, takes_strips(kernel)
        totals = count_totals(kernel) if kernel.taps else 0
        return KernelRecord(
            kernel.name,
            types,
            reducing,
            along_rows,
            cells,
            tiled,
            strips=strips,
            windows=window_points(kernel),
            totals=totals,
            apart=loads_apart(kernel),
        )

    def to_data(self) -> list[Any]:
        """JSON data."""
        fixed = None if self.fixed is None else list(self.fixed)
        tuned = None if self.tuned is None else [*self.tuned[:2], *self.tuned[2].to_data()]
        return [
            self.name,
            list(self.types),
            self.reduces,
            self.along_rows,
            list(self.cells),
            self.tiled,
            fixed,
            tuned,
            self.strips,
            self.windows,
            self.totals,
            self.apart,
        ]

    @staticmethod
    def from_data(data: Any) -> KernelRecord:
        """What ``to_data`` wrote; ValueError or TypeError for anything else."""
        name, types, reducing, along_rows, cells, tiled, fixed, tuned, strips, windows, totals, apart = data
        own, between = tuple(map(str, types)), tuple(map(str, cells))
        counts = None if fixed is None else (int(fixed[0]), int(fixed[1]))
        chosen = None if tuned is None else (int(tuned[0]), int(tuned[1]), Launch.from_data(tuned[2:]))
        return KernelRecord(
            str(name),
            own,
            bool(reducing),
            bool(along_rows),
            between,
            bool(tiled),
            counts,
            chosen,
            bool(strips),
            int(windows),
            int(totals),
            bool(apart),
        )

    def launch(self, rows: int, points: int) -> Launch:
        """The launch for ``2**rows`` rows of ``2**points`` points, and for fewer down to the next power of two."""
        if self.fixed is not None:
            return Launch(1 << rows, 1, 1, self.fixed[0], stages=self.fixed[1])
        if self.tuned is not None and self.tuned[:2] == (rows, points):
            return self.tuned[2]
        if self.tiled:
            return choose_tile(1 << rows, 1 << points, strips=self.strips, windows=self.windows)
        length = 1 << points if self.reduces else None
        splits = bool(self.cells)
        return choose(
            1 << rows,
            length,
            along_rows=self.along_rows,
            splits=splits,
            totals=self.totals,
            apart=self.apart,
        )

    def functions(self, rows: int, points: int) -> tuple[int, int, tuple[tuple[KernelRecord, Launch], ...]]:
        """What is compiled for such a launch: the number of parts of a split kernel (0: tiles), the points of one
        block, and its one or two functions."""
        launch = self.launch(rows, points)
        if self.tiled or launch.parts == 1:
            return (0 if self.tiled else 1), launch.points, ((self, launch),)
        one, other = self.split(PARTS), self.split(JOINED)
        return launch.parts, launch.points, ((one, launch), (other, joining(1 << rows, launch.parts)))

    def split(self, suffix: str) -> KernelRecord:
        """The record of one of the two functions of a split kernel, whose last parameter is a size."""
        return replace(self, name=self.name + suffix, types=(*self.types, *self.cells, "i64"))

    def attributes(self, traits: int) -> dict[tuple[int], list[list[Any]]]:
        """What Triton may take for granted of each parameter."""
        wanted = {"*": traits & POINTERS_ALIGNED, "i": traits & SIZES_ALIGNED, "f": 0}
        own = self.types[: -len(self.cells) - 1] if self.name.endswith((PARTS, JOINED)) else self.types
        return {(i,): [["tt.divisibility", 16]] for i, kind in enumerate(own) if wanted[kind[0]]}


def _type_of(parameter: object) -> str:
    if isinstance(parameter, BufferParameter):
        return _POINTERS[parameter.dtype]
    return "i64" if isinstance(parameter, SizeParameter) else "fp64"


def form_of(record: KernelRecord, launch: Launch, traits: int) -> Form:
    """What tells a compiled kernel from others of its module."""
    return record.name, launch.rows, launch.points, launch.warps, launch.stages, traits


class KernelLoader:
    """Called by the runtime with a kernel's number, the bits of its rows and points, and the launch's traits.

    The text in ``file`` is kept: a store that is temporary, or from which entries are removed, may be without it when a
    kernel is launched first. ``images`` are kernels that were compiled before.
    """

    def __init__(
        self,
        file: Path,
        kernels: tuple[KernelRecord, ...],
        device: int,
        images: Mapping[Form, Image] | None = None,
    ) -> None:
        self._file, self._kernels, self._device = file, kernels, device
        self._text = file.read_bytes()
        self._images = {} if images is None else images

    def __call__(self, number: int, rows: int, points: int, traits: int) -> tuple[int, ...]:
        """The loaded function, rows of one block, threads, and bytes of shared memory; of a split kernel also the
        number of parts, points of one block, and the same four of the function that joins them; of tiles 0 and the
        points of one.
        """
        parts, points_of_block, functions = self._kernels[number].functions(rows, points)
        first, *others = (self._loaded(record, launch, traits) for record, launch in functions)
        if parts == 1:
            return first
        return (*first, parts, points_of_block, *(word for other in others for word in other))

    def _loaded(self, record: KernelRecord, launch: Launch, traits: int) -> tuple[int, int, int, int]:
        image = self._images.get(form_of(record, launch, traits))
        function = None if image is None else load_image(image)
        if image is not None and function is not None:
            return function, launch.rows, image.threads, image.shared
        made = compile_kernel(getattr(self._module, record.name), record, launch, traits, None)
        shared, warps = made.metadata.shared, made.metadata.num_warps
        return self._load(made, shared), launch.rows, 32 * warps, shared

    @cached_property
    def _module(self) -> ModuleType:
        file = self._file
        if not file.exists():
            kept = process_store().put(content_key(self._text), None, {file.name: self._text})
            file = kept.files[file.name]
        names = [
            name + suffix for name in (one.name for one in self._kernels) for suffix in ("", PARTS, JOINED)
        ]
        return LazyModule(f"inductor_codegen_generated_{file.stem}", self._text.decode(), str(file), names)

    def _load(self, made: Any, shared: int) -> int:
        """Straight onto the device: the launcher that Triton would compile for the kernel's signature is not used."""
        from triton.runtime import driver

        utilities = driver.active.utils
        module, function, *_ = utilities.load_binary(made.name, made.kernel, shared, self._device)
        _LOADED.append(module)
        return int(function)


_LOADED: list[Any] = []
"""Modules on GPUs; generated libraries remember their functions, so they stay."""


def compile_kernel(function: Any, record: KernelRecord, launch: Launch, traits: int, target: Any) -> Any:
    """Triton's compiled kernel, out of its cache if it is there. ``target`` None is the current device."""
    attributes, options = record.attributes(traits), options_of(launch)
    return compile_function(function, record.types, constants_of(launch), attributes, options, target)


def constants_of(launch: Launch) -> dict[str, int]:
    """The constants that a kernel is compiled with."""
    return {"XBLOCK": launch.rows, "RBLOCK": launch.points}


def options_of(launch: Launch) -> dict[str, Any]:
    """Triton's options for a kernel."""
    options = {"num_warps": launch.warps, **OPTIONS}
    return {**options, "num_stages": launch.stages} if launch.stages else options
