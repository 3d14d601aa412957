"""What steps read and define, how long memory is needed, and when a kernel may work in place."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fx_interface.tensor_spec import contiguous_strides
from inductor_codegen.ir.index import Index, variable
from inductor_codegen.ir.kernel import Access, BufferParameter, Kernel, Pass, Store, Vector
from inductor_codegen.ir.program import (
    Allocate,
    Buffer,
    BufferRef,
    CallExtern,
    Free,
    Reuse,
    RunKernel,
    Storage,
    View,
)
from inductor_codegen.ir.scalar import Scalar, ScalarBuilder
from inductor_codegen.schedule.programs.liveness import defines, in_place, last_uses, reads

F32 = torch.float32
ROW, COLUMN = variable("i", 4), variable("j", 5)
X, Y = BufferParameter("x", F32, Access.READ), BufferParameter("y", F32, Access.WRITE)


def buffer(name: str) -> Buffer:
    return Buffer(name, (4,), contiguous_strides((4,)), F32, torch.device("cpu"))


def run(*buffers: str) -> RunKernel:
    return RunKernel("k", buffers, (), (), None)


def test_what_steps_read_and_define() -> None:
    call = CallExtern(
        torch.ops.aten.cat.default,
        ((BufferRef("a"), BufferRef("b")), 0),
        (("out", BufferRef("c")),),
        (buffer("r"), None),
    )
    assert list(reads(call)) == ["a", "b", "c"]
    assert defines(call) == ("r",)
    assert list(reads(run("a", "b"))) == ["a", "b"]
    assert not defines(run("a", "b"))
    assert list(reads(Allocate(buffer("a"), Storage.TENSOR))) == list(reads(Free("a"))) == []
    assert list(reads(Reuse(buffer("b"), "a"))) == ["a"]
    assert defines(Reuse(buffer("b"), "a")) == ("b",)


def test_memory_is_needed_until_the_last_view_of_it_is_read() -> None:
    steps = [
        Allocate(buffer("a"), Storage.SCRATCH),
        run("a"),
        View(buffer("v"), "a", 0),
        Allocate(buffer("b"), Storage.SCRATCH),
        run("b"),
        run("v", "b"),
    ]
    assert last_uses(steps, set(), {}) == {"a": 5, "v": 5, "b": 5}
    assert last_uses(steps, {"v"}, {})["a"] == len(steps), "the output shows its memory"
    assert last_uses(steps, set(), {"b": {"a"}})["a"] == 5
    assert last_uses([Allocate(buffer("unused"), Storage.SCRATCH)], set(), {}) == {"unused": 0}


def kernel(points: list[tuple[Index, Scalar]], row: Sequence[tuple[Index, Scalar]] = ()) -> Kernel:
    stores, after = ([Store("y", index, value) for index, value in part] for part in (points, row))
    return Kernel("k", (X, Y), (), (), Vector.INNER, (Pass(tuple(stores), tuple(after)),))


def test_a_point_may_be_written_where_it_is_read() -> None:
    make = ScalarBuilder()
    here, there = make.load("x", ROW * 5 + COLUMN, F32), make.load("x", COLUMN * 4 + ROW, F32)
    assert in_place(kernel([(ROW * 5 + COLUMN, here)]), X, Y)
    assert not in_place(kernel([(ROW * 5 + COLUMN, there)]), X, Y), "another point is read"
    assert not in_place(kernel([(ROW * 5 + COLUMN, make.apply("add", (here, there), F32))]), X, Y)
    assert not in_place(kernel([(ROW * 5 + COLUMN, here)], row=[(ROW, make.load("x", ROW, F32))]), X, Y), (
        "read again later"
    )
    assert in_place(kernel([(ROW, make.constant(1.0, F32))]), X, Y), "nothing is read"
    assert not in_place(kernel([]), X, Y), "nothing is written"
