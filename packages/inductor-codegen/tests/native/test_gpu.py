"""The native entry of a program for a GPU: its text, that it compiles, and the record of its kernels."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.triton.launch.kernels import KernelRecord
from inductor_codegen.codegen.triton.wrapper import kernels_source
from inductor_codegen.codegen.wrapper import write_entry
from inductor_codegen.codegen.wrapper.labels import named_by_lines
from inductor_codegen.ir.program import Program
from inductor_codegen.native.cpu import build_entry
from inductor_codegen.pipeline import kernel_sources, plan
from inductor_codegen.testing import ExampleGraph, GpuGraph, on_device
from inductor_codegen.toolchain.cpp_compiler import find_compiler
from inductor_codegen.trusted import open_folder

GOLDEN = Path(__file__).parent / "golden"
CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


@pytest.fixture
def program() -> Program:
    graph = ExampleGraph()
    size = graph.symbol()
    x = graph.input(torch.randn(8, 11))
    y = graph.call(p.tanh, x)
    total = graph.call(p.broadcast_in_dim, graph.call(p.sum, y, [1]), [8, size], [0])
    lengths = graph.call(p.sum, graph.call(p.exp, x), [0])
    made: Program = on_device(plan(graph.build(graph.call(p.div, y, total), graph.call(p.neg, lengths))), GPU)
    return made


def test_the_text_is_what_it_was(program: Program) -> None:
    """Golden: update with ``FX_UPDATE_GOLDEN=1``."""
    entry = write_entry(program, GPU)
    body = entry.text[entry.text.index("static GpuKernel") : entry.text.index("static const struct")]
    file = GOLDEN / "entry.cpp"
    if os.environ.get("FX_UPDATE_GOLDEN"):
        file.write_text(body)
    assert body == file.read_text()
    assert "fx_scratch_take(graph" not in body
    assert "#define FX_DEVICE 1, 0\n" in entry.text


def test_the_text_compiles(program: Program, tmp_path: Path) -> None:
    library, record = build_entry(
        write_entry(program, GPU), (), "key", find_compiler(), open_folder(tmp_path)
    )
    assert library.startswith(b"\x7fELF")
    assert (record.input_kinds, record.output_kinds) == ("it", "tt")


def test_a_graph_may_compute_on_the_cpu_besides(tmp_path: Path) -> None:
    """What it computes there is C++ in the same library, with memory of the CPU."""
    graph = GpuGraph()
    x = graph.input(torch.randn(5, 7))
    given = graph.here(graph.input, torch.tensor(3.0), "given")
    scale = graph.here(graph.call, p.exp, given)
    program = plan(
        graph.build(graph.call(p.mul, x, graph.call(p.broadcast_in_dim, scale, [5, 7], [])), scale)
    )
    (kernel,) = program.kernels_on(CPU)
    assert kernel not in program.kernels_on(GPU)
    entry = write_entry(program, GPU)
    assert "fx_new_here(&f.h" in entry.text
    assert f"Kernel {kernel.name};" in entry.text
    assert "const double f_given_number = *(const float*)ip[1];" in entry.text
    sources = kernel_sources(replace(program, kernels=(kernel,)))
    library, _ = build_entry(entry, sources, "key", find_compiler(), open_folder(tmp_path))
    assert library.startswith(b"\x7fELF")


def test_records_of_kernels(program: Program) -> None:
    by_rows, by_columns = sorted(map(KernelRecord.of, program.kernels), key=lambda record: record.along_rows)
    assert by_rows.types == by_columns.types == ("*fp32", "*fp32", "i64")
    assert (by_rows.reduces, by_rows.along_rows) == (True, False)
    assert (by_columns.reduces, by_columns.along_rows) == (True, True)
    assert KernelRecord.from_data(by_rows.to_data()) == by_rows
    assert by_rows.launch(3, 4).points == 16


def test_what_a_launch_may_take_for_granted() -> None:
    record = KernelRecord("k", ("*fp32", "i64", "fp64"), False, False)
    divisible = [["tt.divisibility", 16]]
    assert record.attributes(0) == {}
    assert record.attributes(1) == {(0,): divisible}
    assert record.attributes(3) == {(0,): divisible, (1,): divisible}


def test_profilers_see_names_of_kernels(program: Program) -> None:
    """Triton's functions are named as the kernels are, and the entry launches the same."""
    named = named_by_lines(program)
    text = kernels_source(named)
    for plain, kernel in zip(program.kernels, named.kernels, strict=True):
        assert kernel.name != plain.name
        assert f"def {kernel.name}" in text
    assert kernels_source(program) == re.sub(r"kernel_\w*__(?=[0-9a-f]{16})", "kernel_", text)
    launches = write_entry(program, GPU).text.count("fx_gpu_launch(graph")
    assert write_entry(named, GPU).text.count("fx_gpu_launch(graph") == launches
