"""The scratch block: who lives in it, that live buffers share no place, and that places are used again."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from fx_interface.symbols import IntLike, Symbol, evaluate, symbol
from fx_interface.tensor_spec import contiguous_strides
from inductor_codegen.codegen.wrapper.buffers.placement import byte_size, may_keep_arguments, place
from inductor_codegen.ir.program import (
    Allocate,
    Buffer,
    BufferRef,
    CallExtern,
    Free,
    Program,
    Reuse,
    Step,
    Storage,
    View,
)

aten = torch.ops.aten
CPU = torch.device("cpu")
S0 = symbol("s0")


def buffer(name: str, *sizes: IntLike, dtype: torch.dtype = torch.float32) -> Buffer:
    return Buffer(name, sizes, contiguous_strides(sizes), dtype, CPU)


def scratch(name: str, *sizes: IntLike) -> Allocate:
    return Allocate(buffer(name, *sizes), Storage.SCRATCH)


def program(*steps: Step, outputs: tuple[str, ...] = ()) -> Program:
    return Program((), (), steps, tuple(map(BufferRef, outputs)))


def test_byte_size_spans_strides() -> None:
    assert byte_size(buffer("x", 2, 3)) == 24
    assert byte_size(Buffer("x", (2, 3), (10, 1), torch.int64, CPU)) == 104
    assert byte_size(Buffer("x", (2, 0), (0, 1), torch.int64, CPU)) == 0
    assert byte_size(Buffer("x", (5,), (0,), torch.bool, CPU)) == 1
    assert byte_size(buffer("x", S0, 4)) == 16 * S0


def test_a_freed_place_is_taken_by_what_fits_best() -> None:
    placed = place(
        program(scratch("a", 100), scratch("b", 10), Free("a"), Free("b"), scratch("c", 9), scratch("d", 90)),
        frozenset(),
    )
    assert placed.slot_of == {"a": 0, "b": 1, "c": 1, "d": 0}
    assert [slot.nominal for slot in placed.slots] == [400, 40]


def test_a_place_grows_when_nothing_fits() -> None:
    placed = place(program(scratch("a", 10), Free("a"), scratch("b", 100)), frozenset())
    assert placed.slot_of == {"a": 0, "b": 0}
    assert list(placed.slots[0].sizes) == [40, 400]


def test_views_and_successors_stay_where_they_are() -> None:
    steps: list[Step] = [
        scratch("a", 8),
        View(buffer("v", 4), "a", 2),
        Free("v"),
        scratch("other", 8),
        Reuse(buffer("b", 4, dtype=torch.int64), "a"),
        Free("b"),
        scratch("c", 8),
    ]
    placed = place(program(*steps), frozenset())
    assert placed.slot_of == {"a": 0, "v": 0, "other": 1, "b": 0, "c": 0}


def test_what_outlives_the_call_is_not_in_the_block() -> None:
    tensor = Allocate(buffer("t", 8), Storage.TENSOR)
    placed = place(program(tensor, scratch("a", 8), outputs=("t",)), frozenset())
    assert placed.slot_of == {"a": 0}


def test_what_an_operator_may_keep_is_not_in_the_block() -> None:
    reshape = CallExtern(aten.reshape.default, (BufferRef("v"), (8,)), (), (buffer("r", 8),))
    steps: list[Step] = [scratch("a", 2, 4), View(buffer("v", 2, 4), "a", 0), scratch("b", 8), reshape]
    assert place(program(*steps), frozenset()).slot_of == {"b": 0}
    harmless = CallExtern(aten.cumsum.default, (BufferRef("v"), 0), (), (buffer("r", 2, 4),))
    assert place(program(*steps[:3], harmless), frozenset()).slot_of == {"a": 0, "v": 0, "b": 1}


def test_results_written_into_given_memory_may_be_in_the_block() -> None:
    call = CallExtern(aten.mm.default, (BufferRef("a"), BufferRef("a")), (), (buffer("r", 4, 4),))
    steps: list[Step] = [scratch("a", 4, 4), call, Free("a"), scratch("b", 4, 4)]
    assert place(program(*steps), frozenset({1})).slot_of == {"a": 0, "r": 1, "b": 0}
    assert place(program(*steps), frozenset()).slot_of == {"a": 0, "b": 0}
    assert place(program(*steps, outputs=("r",)), frozenset({1})).slot_of == {"a": 0, "b": 0}


def test_which_operators_may_keep_arguments() -> None:
    keeping = (aten.reshape.default, aten.as_strided.default, aten.view.default, aten.contiguous.default)
    assert all(map(may_keep_arguments, keeping))
    giving = (aten.mm.default, aten.convolution.default, aten.topk.default, aten.index.Tensor)
    assert not any(map(may_keep_arguments, giving))


SIZES: st.SearchStrategy[IntLike] = st.integers(0, 50) | st.integers(1, 5).map(lambda n: n * S0)


@given(st.lists(SIZES, max_size=12), st.randoms(use_true_random=False), st.integers(2, 200))
def test_live_buffers_never_share_a_place(sizes: list[IntLike], random: object, value: int) -> None:
    steps: list[Step] = []
    live: list[str] = []
    snapshots: list[list[str]] = []
    for number, size in enumerate(sizes):
        while live and random.random() < 0.4:  # type: ignore[attr-defined]
            steps.append(Free(live.pop(random.randrange(len(live)))))  # type: ignore[attr-defined]
        steps.append(scratch(f"b{number}", size))
        live.append(f"b{number}")
        snapshots.append(list(live))
    placed = place(program(*steps), frozenset())
    for names in snapshots:
        assert len({placed.slot_of[name] for name in names}) == len(names)
    for number, size in enumerate(sizes):
        slot = placed.slots[placed.slot_of[f"b{number}"]]
        values = {Symbol("s0"): value}
        assert max(evaluate(n, values) for n in slot.sizes) >= 4 * evaluate(size, values)


def test_a_place_holds_each_size_once() -> None:
    steps = [step for n in range(50) for step in (scratch(f"a{n}", 10 + n % 2), Free(f"a{n}"))]
    (slot,) = place(program(*steps), frozenset()).slots
    assert (list(slot.sizes), slot.nominal) == ([40, 44], 44)
