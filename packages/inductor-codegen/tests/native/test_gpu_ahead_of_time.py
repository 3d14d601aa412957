"""A GPU's graph as a native object with its kernels inside, made on a machine without a GPU.

Kernels are compiled in processes of their own: other tests of this one run them in Triton's interpreter.
"""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from fx_interface import UnsupportedProgramError
from fx_interface.dialects import prims as p
from inductor_codegen.native import launch_classes
from inductor_codegen.native.gpu_ahead_of_time import compile_for_gpus
from inductor_codegen.native.kernel_images import literal
from inductor_codegen.options import CodegenOptions
from inductor_codegen.testing import ExampleGraph, GpuGraph


class Image(ctypes.Structure):
    _fields_ = (
        ("content", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("threads", ctypes.c_uint32),
        ("shared", ctypes.c_uint32),
    )


class Variant(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int32) for name in ("number", "rows", "points", "traits")),
        *((name, ctypes.c_int64) for name in ("parts", "block_points", "block", "join_block")),
        *((name, ctypes.c_int32) for name in ("image", "join")),
    )


class Table(ctypes.Structure):
    _fields_ = (
        ("images", ctypes.POINTER(Image)),
        ("variants", ctypes.POINTER(Variant)),
        ("image_count", ctypes.c_int64),
        ("variant_count", ctypes.c_int64),
    )


def softmax(graph: ExampleGraph, columns: object = 32) -> GraphModule:
    x = graph.input(torch.randn(8, columns if isinstance(columns, int) else 11))
    shifted = graph.call(p.exp, x)
    total = graph.call(p.broadcast_in_dim, graph.call(p.sum, shifted, [1]), [8, columns], [0])
    made: GraphModule = graph.build(graph.call(p.div, shifted, total))
    return made


def split_and_tiles() -> GraphModule:
    graph = GpuGraph()
    x = graph.input(torch.randn(3, 1 << 18))
    y, z = graph.input(torch.randn(80, 64), "y"), graph.input(torch.randn(64, 80).t(), "z")
    made: GraphModule = graph.build(graph.call(p.sum, graph.call(p.exp, x), [1]), graph.call(p.add, y, z))
    return made


def several(rows: int | None, *, low: int = 2, high: int | None = None) -> GraphModule:
    """With ``rows`` None they vary."""
    graph = GpuGraph()
    named: Any = graph.symbol(low, high) if rows is None else rows
    example = graph.builder.env.hint(named)
    x, y = graph.input(torch.randn(example, 96)), graph.input(torch.randn(96, example).t(), "y")
    joined = graph.call(p.add, x, y)
    total = graph.call(p.broadcast_in_dim, graph.call(p.sum, joined, [1]), [named, 96], [0])
    made: GraphModule = graph.build(
        graph.call(p.div, joined, total), graph.call(p.sum, graph.call(p.exp, x), [0])
    )
    return made


def nothing() -> GraphModule:
    """As a backward that hands on what arrives."""
    graph = GpuGraph()
    graph.input(torch.randn(3))
    made: GraphModule = graph.build()
    return made


GRAPHS: dict[str, Callable[[], GraphModule]] = {
    "softmax": lambda: softmax(GpuGraph()),
    "split and tiles": split_and_tiles,
    **{str(rows): functools.partial(several, rows) for rows in (1, 33, 5000)},
    "nothing": nothing,
    "varying": functools.partial(several, None, high=300),
}
ARCHITECTURES = ("sm_80", "sm_90")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the native objects of all graphs, as ``<graph>.<architecture>.so``."""
    pytest.importorskip("triton")
    folder = tmp_path_factory.mktemp("compiled")
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    subprocess.run([sys.executable, __file__, folder], env=environment, check=True)
    return folder


def compile_all(folder: Path) -> None:
    """What that process does."""
    for name, build in GRAPHS.items():
        native = compile_for_gpus(build(), ARCHITECTURES, CodegenOptions(cache_dir=folder / "cache"))
        assert set(native.record.input_kinds) <= {"t", "i", "u"}
        assert native.record.gpu == 0
        for arch, library in native.libraries.items():
            (folder / f"{name}.{arch}.so").write_bytes(library)


def table_of(file: Path) -> tuple[ctypes.CDLL, Table]:
    loaded = ctypes.CDLL(str(file))
    return loaded, Table.in_dll(loaded, "fx_gpu_variants")


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_kernels_are_inside(compiled: Path, arch: str) -> None:
    _, table = table_of(compiled / f"softmax.{arch}.so")
    variants = [table.variants[i] for i in range(table.variant_count)]
    images = [table.images[i] for i in range(table.image_count)]
    assert [(v.number, v.rows, v.points, v.traits) for v in variants] == [(0, 3, 5, 3), (0, 3, 5, 2)]
    assert all(0 <= v.image < len(images) and v.parts == 1 and v.block > 0 for v in variants)
    for image in images:
        head = ctypes.string_at(image.content, 64)
        assert head[:4] == b"\x7fELF"
        assert image.threads % 32 == 0
        assert f"{image.name.decode()}".startswith("k")
        flags = int.from_bytes(head[48:52], "little")  # the architecture is in an ELF file's flags
        assert int(arch.removeprefix("sm_")) in (flags & 0xFF, flags >> 8 & 0xFF), hex(flags)


def test_a_split_reduction_and_tiles(compiled: Path) -> None:
    """A kernel of two functions, and one that lies across: as the process's loader would have them."""
    _, table = table_of(compiled / "split and tiles.sm_90.so")
    found = {}
    for one in (table.variants[i] for i in range(table.variant_count)):
        names = [table.images[i].name.decode().split("_")[2:] for i in (one.image, one.join)]
        found[one.rows, one.points, one.traits] = (
            one.parts,
            one.block_points,
            one.block,
            one.join_block,
            names,
        )
    split, tiles = (128, 2048, 1, 4, [["parts"], ["joined"]]), (0, 64, 64, 64, [[], []])
    assert found == {(2, 18, 3): split, (2, 18, 2): split, (7, 6, 3): tiles, (7, 6, 2): tiles}


class Kernel(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_int32) for name in ("number", "pointers", "sizes", "floats", "cells"))


def launches_of(
    library: ctypes.CDLL, inputs: int, outputs: int, *sizes: int
) -> list[tuple[int, int, int, int]]:
    """What an entry launches, with functions that do nothing in the place of torch's and the host's: number, bits of
    rows and points, and whether its arguments that are sizes are multiples of 16. ``sizes`` are the graph's."""
    found = []
    memory = ctypes.create_string_buffer(64)
    word = ctypes.c_void_p

    def launch(_: int, kernel: Any, __: int, rows: int, points: int, arguments: Any) -> int:
        of = kernel.contents
        given = [
            ctypes.cast(arguments[of.pointers + i], ctypes.POINTER(ctypes.c_int64))[0]
            for i in range(of.sizes)
        ]
        is_aligned = 2 if all(size % 16 == 0 for size in given) else 0
        found.append((of.number, (rows - 1).bit_length(), (points - 1).bit_length(), is_aligned))
        return 0

    def give(*arguments: Any) -> int:
        ctypes.cast(arguments[-1], ctypes.POINTER(word))[0] = ctypes.addressof(memory)
        return 0

    numbers = ctypes.c_int64
    three = (word, word, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32, word)
    functions: dict[str, Any] = {
        "fx_gpu_launch": ctypes.CFUNCTYPE(
            ctypes.c_int32, word, ctypes.POINTER(Kernel), word, numbers, numbers, ctypes.POINTER(word)
        )(launch),
        "aoti_torch_empty_strided": ctypes.CFUNCTYPE(ctypes.c_int32, numbers, *three)(give),
        "aoti_torch_get_data_ptr": ctypes.CFUNCTYPE(ctypes.c_int32, word, word)(give),
        "aoti_torch_new_tensor_handle": ctypes.CFUNCTYPE(ctypes.c_int32, word, word)(give),
        "aoti_torch__reinterpret_tensor": ctypes.CFUNCTYPE(
            ctypes.c_int32, word, numbers, word, word, numbers, word
        )(give),
    }
    nothing = ctypes.CFUNCTYPE(ctypes.c_int32)(lambda: 0)

    @ctypes.CFUNCTYPE(word, ctypes.c_char_p)
    def find(name: bytes) -> int | None:
        text = name.decode()
        if "watch" in text:
            return None
        return ctypes.cast(functions.get(text, nothing), word).value

    missing = ctypes.c_char_p()
    assert library.fx_bind(find, ctypes.byref(missing)) == 0
    given = (word * (2 * inputs))(*[ctypes.addressof(memory)] * inputs)
    passed = (numbers * len(sizes))(*sizes)
    assert library.fx_entry(None, given, passed, (word * outputs)(), None) == 0
    return found


def test_a_graph_that_computes_nothing(compiled: Path) -> None:
    library, table = table_of(compiled / "nothing.sm_90.so")
    assert table.variant_count == 0
    assert launches_of(library, 1, 0) == []


@pytest.mark.parametrize("rows", [1, 33, 5000])
def test_every_launch_has_a_variant(rows: int, compiled: Path) -> None:
    """What the entry asks for when it runs is what was compiled."""
    library, table = table_of(compiled / f"{rows}.sm_80.so")
    variants = [table.variants[i] for i in range(table.variant_count)]
    launched = launches_of(library, 2, 2)
    assert len(launched) >= 2
    for number, row_bits, point_bits, sizes in launched:
        fitting = [
            v.traits for v in variants if (v.number, v.rows, v.points) == (number, row_bits, point_bits)
        ]
        assert fitting == [sizes | 1, sizes]


def test_sizes_that_vary_have_variants(compiled: Path) -> None:
    """All launches that any size makes have what was compiled for their class, and nothing was compiled besides."""
    library, table = table_of(compiled / "varying.sm_90.so")
    variants = [table.variants[i] for i in range(table.variant_count)]
    launched = {one for rows in range(2, 301) for one in launches_of(library, 2, 2, rows)}
    assert len({rows for _, rows, _, _ in launched}) > 8
    in_table = [(v.number, v.rows, v.points, v.traits) for v in variants]
    assert set(in_table) == {
        (*launch, sizes | pointers) for *launch, sizes in launched for pointers in (0, 1)
    }
    assert in_table == sorted(in_table, key=lambda one: (*one[:3], -one[3]))
    assert table.image_count < table.variant_count


def test_sizes_that_vary_too_widely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(launch_classes, "MOST_COMPILED", 8)
    with pytest.raises(UnsupportedProgramError, match=r"(?s)IND109.*s0 from 2 to any.*max=\d"):
        compile_for_gpus(several(None), ("sm_90",), CodegenOptions(cache_dir=tmp_path))


def test_an_interpreter_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with pytest.raises(UnsupportedProgramError, match="IND107"):
        compile_for_gpus(softmax(GpuGraph()), ("sm_90",), CodegenOptions(cache_dir=tmp_path))


def test_a_graph_on_the_cpu_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedProgramError, match="IND105"):
        compile_for_gpus(softmax(ExampleGraph()), ("sm_90",), CodegenOptions(cache_dir=tmp_path))


def test_literals_are_the_bytes(tmp_path: Path) -> None:
    content = bytes(range(256)) + b'0"\\??/7'
    (tmp_path / "a.cpp").write_text(f'extern "C" const char made[] =\n{literal(content)};\n')
    subprocess.run(["c++", "-shared", "-fPIC", "a.cpp", "-o", "a.so"], cwd=tmp_path, check=True)
    made = (ctypes.c_char * len(content)).in_dll(ctypes.CDLL(str(tmp_path / "a.so")), "made")
    assert made.raw == content


if __name__ == "__main__":
    compile_all(Path(sys.argv[1]))
