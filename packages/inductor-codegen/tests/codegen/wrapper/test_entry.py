"""Entries of hand-written programs: memory, views, numbers and outputs, run natively."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest
import torch

from fx_interface.errors import UserLocation
from fx_interface.symbols import IntLike, Symbol, symbol
from fx_interface.tensor_spec import contiguous_strides
from inductor_codegen.cache import ArtifactStore
from inductor_codegen.codegen.wrapper import EntrySource, write_entry
from inductor_codegen.ir.kernel import Access, BufferParameter, FloatParameter, Kernel, SizeParameter, Vector
from inductor_codegen.ir.program import (
    Allocate,
    Buffer,
    BufferRef,
    CallExtern,
    FloatInput,
    FloatRef,
    Free,
    Program,
    Reuse,
    RunKernel,
    Step,
    Storage,
    SymbolInput,
    UnusedInput,
    View,
)
from inductor_codegen.native.cpu import build_graph
from inductor_codegen.runtime import CompiledGraph

aten = torch.ops.aten
CPU = torch.device("cpu")
S0 = symbol("s0")
GOLDEN = Path(__file__).parent / "golden"

SCALE = Kernel(
    "scale",
    (
        BufferParameter("a", torch.float32, Access.READ),
        BufferParameter("b", torch.float32, Access.WRITE),
        SizeParameter("n"),
        FloatParameter("by"),
    ),
    (),
    (),
    Vector.INNER,
    (),
)
SCALE_TEXT = """#include <stdint.h>
extern "C" int32_t scale(const int64_t* given, int64_t, int64_t) {
    const float* a = (const float*)given[0];
    float* b = (float*)given[1];
    const int64_t n = given[2];
    double by;
    __builtin_memcpy(&by, given + 3, 8);
    for (int64_t i = 0; i < n; i++) {
        if (a[i] == 13) return 1;
        b[i] = a[i] * (float)by;
    }
    return 0;
}
"""


def buffer(name: str, *sizes: IntLike, dtype: torch.dtype = torch.float32) -> Buffer:
    return Buffer(name, sizes, contiguous_strides(sizes), dtype, CPU)


def scale(a: str, b: str, n: IntLike, by: str = "f", where: UserLocation | None = None) -> RunKernel:
    return RunKernel("scale", (a, b), (n,), (by,), where)


def build(program: Program, folder: Path) -> CompiledGraph:
    return build_graph(write_entry(program), (SCALE_TEXT,), ArtifactStore(folder))


BIG = Program(
    (SymbolInput(Symbol("s0")), buffer("x", S0, 4), UnusedInput(), FloatInput("f"), buffer("w", 4, 4)),
    (SCALE,),
    (
        Allocate(buffer("t", S0, 4), Storage.SCRATCH),
        scale("x", "t", S0 * 4, where=UserLocation("model.py", 3, "forward")),
        CallExtern(aten.mm.default, (BufferRef("t"), BufferRef("w")), (), (buffer("m", S0, 4),)),
        Reuse(buffer("u", S0 * 4), "t"),
        scale("m", "u", S0 * 4),
        Free("m"),
        Allocate(buffer("o", S0, 4), Storage.TENSOR),
        scale("u", "o", S0 * 4),
        Free("u"),
        View(buffer("v", 4), "o", 4),
        View(Buffer("c", (S0,), (4,), torch.float32, CPU), "x", 1),
    ),
    (
        BufferRef("o"),
        BufferRef("v"),
        BufferRef("o"),
        BufferRef("x"),
        BufferRef("c"),
        None,
        S0 * 2 + 1,
        FloatRef("f"),
    ),
)


def test_memory_views_numbers_and_outputs(tmp_path: Path) -> None:
    graph = build(BIG, tmp_path)
    w = torch.randn(4, 4)
    for rows in (2, 5, 300):
        x = torch.randn(rows, 4)
        out, view, again, same, column, nothing, number, by = graph(rows, x, "anything", 0.5, w)
        torch.testing.assert_close(out, ((x * 0.5) @ w) * 0.25)
        assert again is out
        assert same is x
        assert view.data_ptr() == out[1].data_ptr()
        assert torch.equal(view, out[1])
        assert (column.data_ptr(), column.stride()) == (x[:, 1].data_ptr(), (4,))
        assert torch.equal(column, x[:, 1])
        assert (nothing, number, by) == (None, 2 * rows + 1, 0.5)
        kept = out.clone()
        graph(rows, x * 9, None, 2.0, w)
        assert torch.equal(out, kept)  # results are nobody else's memory


def test_several_threads_each_have_scratch_memory(tmp_path: Path) -> None:
    graph = build(BIG, tmp_path)
    w = torch.eye(4)
    wrong: list[float] = []

    def work(value: float) -> None:
        x = torch.full((200, 4), value)
        for _ in range(300):
            (out, *_) = graph(200, x, None, 2.0, w)
            if not torch.equal(out, x * 8):
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(float(number),)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_view_of_a_view_of_an_offset_input(tmp_path: Path) -> None:
    program = Program(
        (buffer("x", 6, 4), FloatInput("f")),
        (SCALE,),
        (
            View(buffer("a", 4, 4), "x", 4),
            View(buffer("b", 8), "a", 4),
            Allocate(buffer("o", 8), Storage.TENSOR),
            scale("b", "o", 8),
        ),
        (BufferRef("o"), BufferRef("b")),
    )
    graph = build(program, tmp_path)
    x = torch.randn(9, 4)[3:]
    doubled, view = graph(x, 2.0)
    assert torch.equal(doubled, x.reshape(-1)[8:16] * 2)
    assert view.data_ptr() == x[2].data_ptr()


def test_a_successor_may_have_another_type_and_be_a_result(tmp_path: Path) -> None:
    program = Program(
        (buffer("x", 4, 4), FloatInput("f")),
        (SCALE,),
        (
            Allocate(buffer("a", 4, 4), Storage.TENSOR),
            scale("x", "a", 16),
            CallExtern(aten.sum.default, (BufferRef("a"),), (), (buffer("s"),)),
            Reuse(buffer("i", 8, dtype=torch.int64), "a"),
            View(buffer("h", 4, dtype=torch.int64), "i", 4),
        ),
        (BufferRef("i"), BufferRef("s"), BufferRef("h")),
    )
    graph = build(program, tmp_path)
    x = torch.randn(4, 4)
    integers, total, half = graph(x, 2.0)
    assert (integers.dtype, integers.shape) == (torch.int64, (8,))
    assert torch.equal(integers.view(torch.float32), (x * 2).reshape(-1))
    assert torch.equal(total, (x * 2).sum())
    assert torch.equal(half, integers[4:])


def test_a_kernel_that_finds_an_index_out_of_range(tmp_path: Path) -> None:
    graph = build(BIG, tmp_path)
    x = torch.full((2, 4), 13.0)
    with pytest.raises(IndexError, match=r"at model\.py:3 in forward"):
        graph(2, x, None, 1.0, torch.ones(4, 4))
    assert graph(2, torch.ones(2, 4), None, 1.0, torch.ones(4, 4))[0].sum() == 32


def test_a_failing_operator_names_the_users_line(tmp_path: Path) -> None:
    where = UserLocation("model.py", 7, "forward")
    results = (Buffer("l", (2, 2), (1, 2), torch.float32, CPU), buffer("info", dtype=torch.int32))
    checked = (("check_errors", True),)
    call = CallExtern(aten.linalg_cholesky_ex.default, (BufferRef("x"),), checked, results, where)
    graph = build(Program((buffer("x", 2, 2),), (), (call,), (BufferRef("l"),)), tmp_path)
    assert torch.equal(graph(torch.eye(2))[0], torch.eye(2))
    with pytest.raises(torch.linalg.LinAlgError) as caught:
        graph(-torch.eye(2))
    assert caught.value.__notes__ == ["while running model.py:7 in forward"]


def test_a_result_of_another_size_than_expected_is_an_error(tmp_path: Path) -> None:
    call = CallExtern(aten.nonzero.default, (BufferRef("x"),), (), (buffer("n", 2, 1, dtype=torch.int64),))
    graph = build(Program((buffer("x", 4),), (), (call,), (BufferRef("n"),)), tmp_path)
    assert graph(torch.tensor([1.0, 0, 0, 1]))[0].tolist() == [[0], [3]]
    with pytest.raises(RuntimeError, match="IND302"):
        graph(torch.ones(4))


def test_a_result_of_other_strides_is_laid_out_as_promised(tmp_path: Path) -> None:
    wanted = Buffer("y", (2, 3, 4, 4), (48, 16, 4, 1), torch.float32, CPU)
    call = CallExtern(aten.clone.default, (BufferRef("x"),), (), (wanted,))
    x = torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last)
    given = Buffer("x", tuple(x.shape), x.stride(), torch.float32, CPU)
    (y,) = build(Program((given,), (), (call,), (BufferRef("y"),)), tmp_path)(x)
    assert y.stride() == wanted.strides
    assert torch.equal(x, y)


def test_one_symbolic_size_among_many_inputs(tmp_path: Path) -> None:
    inputs = [buffer(f"x{i}", S0 if i == 17 else 4, 4) for i in range(20)]
    program = Program((SymbolInput(Symbol("s0")), *inputs), (), (), (BufferRef("x17"),))
    graph = build(program, tmp_path)
    good = [torch.zeros(7 if i == 17 else 4, 4) for i in range(20)]
    assert graph(7, *good)[0] is good[17]
    for wrong in (3, 17, 19):
        given = [torch.zeros(5, 4) if i == wrong else tensor for i, tensor in enumerate(good)]
        with pytest.raises(ValueError, match=rf"tensor input {wrong}\b"):
            graph(7, *given)


def test_empty_tensors_and_empty_programs(tmp_path: Path) -> None:
    program = Program(
        (buffer("x", 0, 4), FloatInput("f")),
        (SCALE,),
        (
            Allocate(buffer("t", 0, 4), Storage.SCRATCH),
            scale("x", "t", 0),
            Allocate(buffer("o", 0, 4), Storage.TENSOR),
            scale("t", "o", 0),
        ),
        (BufferRef("o"),),
    )
    assert build(program, tmp_path)(torch.empty(0, 4), 1.0)[0].shape == (0, 4)
    assert build(Program((), (), (), ()), tmp_path)() == ()


def test_the_kinds_and_the_gil() -> None:
    entry = write_entry(BIG)
    assert (entry.input_kinds, entry.output_kinds) == ("ituft", "tttttnif")
    assert entry.release_gil
    small = Program((buffer("x", 4),), (), (), (BufferRef("x"),))
    assert not write_entry(small).release_gil


def test_the_text_is_what_it_was() -> None:
    """Golden: update with ``FX_UPDATE_GOLDEN=1``."""
    entry: EntrySource = write_entry(BIG)
    file = GOLDEN / "entry.cpp"
    body = entry.text[entry.text.index("static const int64_t t0") : entry.text.index("static const struct")]
    if os.environ.get("FX_UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(body)
    assert body == file.read_text()
    assert write_entry(BIG) == entry


def layered(layers: int, failing: int | None = None) -> Program:
    """``x`` times 2 and times ``w``, so many times; one layer may read a tensor that the kernel refuses."""
    steps: list[Step] = []
    given = "x"
    for n in range(layers):
        read = "bad" if n == failing else given
        steps += [
            Allocate(buffer(f"t{n}", 4, 4), Storage.SCRATCH),
            scale(read, f"t{n}", 16, where=UserLocation("model.py", 7, "forward")),
            CallExtern(
                aten.mm.default, (BufferRef(f"t{n}"), BufferRef(f"w{n}")), (), (buffer(f"m{n}", 4, 4),)
            ),
            CallExtern(
                aten.nonzero_static.default,
                (BufferRef(f"m{n}"),),
                (("size", 2),),
                (Buffer(f"z{n}", (2, 2), (1, 2), torch.int64, CPU),),
            ),
            Free(f"t{n}"),
        ]
        given = f"m{n}"
    weights = tuple(buffer(f"w{n}", 4, 4) for n in range(layers))
    outputs = (BufferRef(given), *(BufferRef(f"z{n}") for n in range(layers)))
    return Program(
        (FloatInput("f"), buffer("x", 4, 4), buffer("bad", 4, 4), *weights), (SCALE,), tuple(steps), outputs
    )


def test_layers_are_a_loop(tmp_path: Path) -> None:
    lengths = {n: len(write_entry(layered(n)).text) for n in (2, 20, 80)}
    assert "for (int64_t it" not in write_entry(layered(2)).text
    assert lengths[20] < 1.3 * lengths[2]
    assert lengths[80] - lengths[20] < 60 * 100  # places in tables, declared inputs
    assert len(write_entry(layered(20)).operators) <= 1
    x, bad = torch.randn(4, 4), torch.full((4, 4), 13.0)
    weights = [torch.randn(4, 4) * 0.3 for _ in range(20)]
    result, *places = build(layered(20), tmp_path)(2.0, x, bad, *weights)
    for weight, found in zip(weights, places, strict=True):
        x = (x * 2) @ weight
        assert torch.equal(found, torch.nonzero_static(x, size=2))
    assert torch.equal(result, x)


def test_a_failure_within_a_loop_frees_what_there_is(tmp_path: Path) -> None:
    graph = build(layered(20, failing=13), tmp_path)
    weights = [torch.randn(4, 4) for _ in range(20)]
    counts = []
    for _ in range(4):
        with pytest.raises(IndexError, match=r"model\.py:7"):
            graph(2.0, torch.randn(4, 4), torch.full((4, 4), 13.0), *weights)
        counts.append(sys.getrefcount(weights[3]))
    assert len(set(counts)) == 1
    x, fine = torch.randn(4, 4), build(layered(20), tmp_path)
    assert torch.isfinite(fine(0.1, x, x, *weights)[0]).all()
