"""Triton kernels of a program without symbolic sizes, compiled for an architecture, as data of a native object.

For each kernel, each size that the program launches it with, and what of its arguments may be taken for granted, there
is a variant, as the runtime (``csrc/gpu.h``) would ask for at a launch. A host without Triton finds them in the
object's table ``fx_gpu_variants``; the most special ones come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fx_interface.symbols import Expr, IntLike, substitute
from inductor_codegen.codegen.triton.launch.kernels import (
    POINTERS_ALIGNED,
    SIZES_ALIGNED,
    KernelRecord,
    compile_kernel,
)
from inductor_codegen.codegen.triton.launch.module import load_module
from inductor_codegen.errors import unsupported
from inductor_codegen.ir.gpu.blocks import point_loops, row_loops
from inductor_codegen.ir.kernel import Kernel, SizeParameter, extent_product
from inductor_codegen.ir.program import Program, RunKernel

TABLE = "fx_gpu_variants"
"""The symbol of a native object's table."""
_ALIGNMENT, _WARP = 16, 32

_TYPES = """\
/* Compiled kernels, as in the loader's gpu_kernels.h. */
#include <stdint.h>
struct Image { const void* content; const char* name; uint32_t threads, shared; };
struct Variant {
    int32_t number, rows, points, traits;
    int64_t parts, block_points, block, join_block;
    int32_t image, join;
};
struct Table { const Image* images; const Variant* variants; int64_t image_count, variant_count; };
"""


class LaunchClass(NamedTuple):
    """A launch of kernel ``number``: bits of its rows and points, and whether its sizes are multiples of 16."""

    number: int
    rows: int
    points: int
    traits: int


def launch_classes(program: Program, kernels: Sequence[Kernel]) -> list[LaunchClass]:
    """The launches that the program makes of ``kernels``. UnsupportedProgramError IND109 where a size varies."""
    numbers = {kernel.name: number for number, kernel in enumerate(kernels)}
    found = set()
    for step in program.steps:
        if not isinstance(step, RunKernel) or step.kernel not in numbers:
            continue
        number = numbers[step.kernel]
        rows, points = _work(kernels[number], step)
        is_aligned = all(size % _ALIGNMENT == 0 for size in map(_fixed, step.sizes))
        if rows:
            found.add(
                LaunchClass(number, _bits(rows), _bits(points), SIZES_ALIGNED if is_aligned else 0),
            )
    return sorted(found)


def images_source(
    file: Path, records: Sequence[KernelRecord], launches: Iterable[LaunchClass], arch: str
) -> str:
    """The C++ text of the table, with the kernels of the module in ``file`` compiled for ``arch`` (``sm_90``).

    ImportError without Triton.
    """
    from triton.backends.compiler import GPUTarget

    target = GPUTarget("cuda", int(arch.removeprefix("sm_")), _WARP)
    images, rows = _Images(load_module(file), target), []
    for launch in launches:
        record = records[launch.number]
        parts, points, functions = record.functions(launch.rows, launch.points)
        for aligned in (POINTERS_ALIGNED, 0):
            traits = launch.traits | aligned
            compiled = [images.add(of, chosen, traits) for of, chosen in functions]
            blocks = [chosen.rows for _, chosen in functions]
            words = [launch.number, launch.rows, launch.points, traits, parts, points, blocks[0], blocks[-1]]
            rows.append(f"    {{{', '.join(map(str, (*words, compiled[0], compiled[-1])))}}},\n")
    return images.text() + _table(images.count, rows)


class _Images:
    """Compiled kernels, each once."""

    def __init__(self, module: Any, target: Any) -> None:
        self._module, self._target = module, target
        self._numbers: dict[tuple[bytes, str], int] = {}
        self._rows: list[str] = []
        self._compiled: dict[Any, int] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._rows)

    def add(self, record: KernelRecord, launch: Any, traits: int) -> int:
        """The number of a kernel's image."""
        key = (record.name, launch.rows, launch.points, launch.warps, launch.stages, traits)
        if key not in self._compiled:
            made = compile_kernel(getattr(self._module, record.name), record, launch, traits, self._target)
            content = (made.asm["cubin"], made.name)
            number = self._numbers.setdefault(content, self.count)
            if number == self.count:
                metadata = made.metadata
                row = f'"{made.name}", {_WARP * metadata.num_warps}, {metadata.shared}'
                self._rows.append(row)
            self._compiled[key] = number
        return self._compiled[key]

    def text(self) -> str:
        """The contents as arrays, and their table."""
        contents = [
            f"alignas(64) static const char i{number}[] =\n{literal(content)};\n"
            for number, (content, _) in enumerate(self._numbers)
        ]
        rows = [f"    {{i{number}, {row}}},\n" for number, row in enumerate(self._rows)]
        return f"{_TYPES}{''.join(contents)}static const Image images[] = {{\n{''.join(rows)}    {{}},\n}};\n"


def _table(images: int, variants: Sequence[str]) -> str:
    return (
        f"static const Variant variants[] = {{\n{''.join(variants)}    {{}},\n}};\n"
        f'extern "C" __attribute__((visibility("default"))) const Table {TABLE} = '
        f"{{images, variants, {images}, {len(variants)}}};\n"
    )


def literal(content: bytes) -> str:
    """Bytes as C's string literals, a line for each 64."""
    lines = (content[start : start + 64] for start in range(0, len(content), 64))
    return "\n".join(f'    "{"".join(map(_escaped, line))}"' for line in lines)


def _escaped(byte: int) -> str:
    return chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"


def _work(kernel: Kernel, step: RunKernel) -> tuple[int, int]:
    names = [parameter.name for parameter in kernel.parameters if isinstance(parameter, SizeParameter)]
    values: Mapping[str, IntLike] = dict(zip(names, step.sizes, strict=True))

    def of(value: IntLike) -> int:
        if isinstance(value, Expr):
            value = substitute(value, {symbol: values[symbol.name] for symbol in value.symbols})
        return _fixed(value)

    return of(extent_product(row_loops(kernel))), of(extent_product(point_loops(kernel)))


def _fixed(size: IntLike) -> int:
    if isinstance(size, Expr):
        raise unsupported(
            "IND109",
            f"a kernel for a GPU is made ahead of time for a size that varies ({size})",
            None,
            "leave it out of dynamic_shapes, or make an entry point for each size",
        )
    return size


def _bits(count: int) -> int:
    """Those of the least power of two that is not below ``count``."""
    return max(count - 1, 0).bit_length()
