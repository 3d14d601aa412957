"""A GPU's graph as a native object with its kernels inside, made on a machine without a GPU."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
import torch
from torch.fx import GraphModule

from fx_interface import UnsupportedProgramError
from fx_interface.dialects import prims as p
from inductor_codegen.native.kernel_images import literal
from inductor_codegen.options import CodegenOptions
from inductor_codegen.testing import ExampleGraph, GpuGraph

pytest.importorskip("triton")
from inductor_codegen.native.gpu_ahead_of_time import compile_for_gpus


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


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    options = CodegenOptions(cache_dir=tmp_path_factory.mktemp("cache"))
    native = compile_for_gpus(softmax(GpuGraph()), ("sm_80", "sm_90"), options)
    assert (native.record.input_kinds, native.record.output_kinds, native.record.gpu) == ("t", "t", 0)
    return dict(native.libraries)


def table_of(library: bytes, folder: Path) -> tuple[ctypes.CDLL, Table]:
    (folder / "graph.so").write_bytes(library)
    loaded = ctypes.CDLL(str(folder / "graph.so"))
    return loaded, Table.in_dll(loaded, "fx_gpu_variants")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_kernels_are_inside(libraries: dict[str, bytes], arch: str, tmp_path: Path) -> None:
    _, table = table_of(libraries[arch], tmp_path)
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


def test_sizes_must_be_fixed(tmp_path: Path) -> None:
    graph = GpuGraph()
    with pytest.raises(UnsupportedProgramError, match="IND109"):
        compile_for_gpus(softmax(graph, graph.symbol()), ("sm_90",), CodegenOptions(cache_dir=tmp_path))


def test_a_graph_on_the_cpu_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedProgramError, match="IND105"):
        compile_for_gpus(softmax(ExampleGraph()), ("sm_90",), CodegenOptions(cache_dir=tmp_path))


def test_literals_are_the_bytes(tmp_path: Path) -> None:
    content = bytes(range(256)) + b'0"\\??/7'
    (tmp_path / "a.cpp").write_text(f'extern "C" const char made[] =\n{literal(content)};\n')
    subprocess.run(["c++", "-shared", "-fPIC", "a.cpp", "-o", "a.so"], cwd=tmp_path, check=True)
    made = (ctypes.c_char * len(content)).in_dll(ctypes.CDLL(str(tmp_path / "a.so")), "made")
    assert made.raw == content
