"""Triton kernels of a program, compiled for an architecture, as data of a native object.

For each class of launches that the program can reach (``launch_classes``), and for pointers that are multiples of 16 or
not, there is a variant, as the runtime (``csrc/gpu.h``) would ask for at a launch. A host without Triton finds them in
the object's table ``fx_gpu_variants``, sorted by kernel, rows and points; the most special ones come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from inductor_codegen.codegen.triton.launch.kernels import POINTERS_ALIGNED, KernelRecord, compile_kernel
from inductor_codegen.codegen.triton.launch.module import load_module
from inductor_codegen.native.launch_classes import LaunchClass

TABLE = "fx_gpu_variants"
"""The symbol of a native object's table."""
_WARP = 32

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
