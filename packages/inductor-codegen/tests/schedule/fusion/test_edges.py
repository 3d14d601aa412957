"""Edges: which elements a point reads, as far as fusion must know it."""

from __future__ import annotations

import torch

from inductor_codegen.lower.values import Operand
from inductor_codegen.lower.views import Broadcast, Permute, Slice, View, reshape
from inductor_codegen.schedule.fusion.edges import Edge, Match, classify


def edge(sizes: tuple[int, ...], *views: View) -> Edge:
    return classify(Operand(0, views, sizes, torch.float32), sizes)


def test_nothing_in_between_is_the_same() -> None:
    assert edge((3, 4)) == Edge(Match.SAME, (0, 1))


def test_reshape_is_the_same() -> None:
    assert edge((2, 6), reshape((3, 4), (2, 6))).match is Match.SAME


def test_broadcast_repeats() -> None:
    assert edge((3, 4), Broadcast((3,), (0,), (3, 4))) == Edge(Match.REPEATED, (0,), True)


def test_kept_dimension_of_size_one_then_broadcast() -> None:
    views = (reshape((3,), (3, 1)), Broadcast((3, 1), (0, 1), (3, 4)))
    assert edge((3, 4), *views) == Edge(Match.REPEATED, (0,), True)


def test_flattened_rows_then_broadcast() -> None:
    views = (reshape((6,), (2, 3)), Broadcast((2, 3), (0, 1), (2, 3, 4)))
    assert edge((2, 3, 4), *views) == Edge(Match.REPEATED, (0, 1), True)


def test_broadcast_that_repeats_nothing_is_the_same() -> None:
    assert edge((1, 4), Broadcast((4,), (1,), (1, 4))).match is Match.SAME


def test_transposition_is_other_and_repeats_nothing() -> None:
    found = edge((4, 3), Permute((1, 0), (4, 3)))
    assert (found.match, found.repeats) == (Match.OTHER, False)


def test_transposition_there_and_back_is_the_same() -> None:
    assert edge((3, 4), Permute((1, 0), (4, 3)), Permute((1, 0), (3, 4))).match is Match.SAME


def test_part_is_other() -> None:
    assert edge((2,), Slice((1,), (1,), (2,))).match is Match.OTHER
