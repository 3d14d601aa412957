"""What a call holds at each step, and which buffers may share a block without raising its peak."""

from __future__ import annotations

import torch

from inductor_codegen.codegen.wrapper.buffers.footprint import FLOOR, Lifetime, curve, lifetimes, small_enough
from inductor_codegen.ir.program import Allocate, Buffer, BufferRef, Free, Program, Reuse, Storage, View

CPU = torch.device("cpu")
BIG = 8 * FLOOR


def _buffer(name: str) -> Buffer:
    return Buffer(name, (8,), (1,), torch.float32, CPU)


def test_lifetimes_follow_successors_and_end_with_the_call() -> None:
    steps = (
        Allocate(_buffer("a"), Storage.SCRATCH),
        View(_buffer("v"), "a", 0),
        Allocate(_buffer("out"), Storage.TENSOR),
        Free("v"),
        Reuse(_buffer("b"), "a"),
        Free("b"),
        Free("x"),
    )
    program = Program((_buffer("x"),), (), steps, (BufferRef("out"),))
    found = lifetimes(program, {"x": 5, "a": 10, "b": 12, "v": 1, "out": 3})
    assert found == [Lifetime("x", 5, 0, 6), Lifetime("a", 12, 0, 5), Lifetime("out", 3, 2, 7)]
    assert curve(found, len(steps)) == [17, 17, 20, 20, 20, 20, 8, 3]


def test_a_block_beside_what_lives_at_other_times_is_refused() -> None:
    pieces = [Lifetime("early", BIG, 0, 2), Lifetime("kept", 4 * BIG, 3, 9)]
    assert small_enough(pieces, frozenset({"early"}), 9, lambda names: BIG * len(names)) == frozenset()


def test_a_block_that_is_full_when_the_call_is_costs_nothing() -> None:
    pieces = [Lifetime("late", BIG, 4, 5), Lifetime("kept", 4 * BIG, 3, 9)]
    assert small_enough(pieces, frozenset({"late"}), 9, lambda names: BIG * len(names)) == {"late"}


def test_small_buffers_share_a_block_in_any_case() -> None:
    pieces = [Lifetime("early", FLOOR, 0, 2), Lifetime("kept", 2 * FLOOR, 3, 9)]
    assert small_enough(pieces, frozenset({"early"}), 9, lambda names: FLOOR * len(names)) == {"early"}


def test_the_small_ones_go_first() -> None:
    sizes = {"tiny": FLOOR // 4, "middle": FLOOR // 2, "large": BIG}
    pieces = [Lifetime(name, size, 0, 2) for name, size in sizes.items()]
    pieces.append(Lifetime("kept", 9 * BIG, 3, 9))
    chosen = small_enough(pieces, frozenset(sizes), 9, lambda names: sum(sizes[name] for name in names))
    assert chosen == {"tiny", "middle"}
