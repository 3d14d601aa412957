"""Records for many blocks, from those for two numbers of blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from fx_interface.errors import UserLocation
from fxstack.blocks.extrapolation import NotRegular, extended


@dataclass(frozen=True)
class Step:
    name: str
    operands: tuple[int, ...]
    scale: float = 1.0
    where: UserLocation | None = None


def _chain(blocks: int) -> tuple[Step, ...]:
    """A first step, two for each block, a last one; each step takes the result before it and an input."""
    line = UserLocation("model.py", 7, "forward")
    steps = [Step("first", (0,))]
    for block in range(blocks):
        steps += [Step("up", (2 * block, block), where=line), Step("down", (2 * block + 1, 5), 0.5, line)]
    return (*steps, Step("last", (2 * blocks, blocks)))


def _backwards(blocks: int) -> tuple[tuple[str, int], ...]:
    """Rounds that count down from a number that grows."""
    return tuple(("saved", 3 * block + 1) for block in reversed(range(blocks)))


def _two_runs(blocks: int) -> tuple[tuple[str, int], ...]:
    """What all blocks have first, then what all blocks have second; the end looks like a block's beginning."""
    inputs = [("input", 4 * block + offset) for block in range(blocks) for offset in (0, 1, 3)]
    outputs = [("output", blocks + 2 * block) for block in range(blocks)]
    return (("input", 0), *inputs, ("input", 4 * blocks), *outputs)


@pytest.mark.parametrize("make", [_chain, _backwards, _two_runs])
@pytest.mark.parametrize("few", [3, 4, 6])
def test_what_is_made_is_what_so_many_blocks_have(make: Callable[[int], Any], few: int) -> None:
    for blocks in (few, few + 1, few + 2, 20):
        assert extended(make(few), make(few + 1), blocks - few) == make(blocks)


def test_numbers_and_fields_grow_where_tuples_do_not() -> None:
    assert extended(Step("a", (3, 5)), Step("a", (3, 7)), 4) == Step("a", (3, 13))


@pytest.mark.parametrize(
    ("few", "many"),
    [
        (Step("a", (1,)), Step("b", (1,))),
        (Step("a", (1,), 0.0), Step("a", (1,), -0.0)),
        ((1, 2), (1, 2.0)),
        ((True, 1), (1, 1)),
        (Step("a", (1,)), (1,)),
    ],
    ids=["name", "sign of zero", "type of number", "bool", "class"],
)
def test_what_differs_otherwise_is_refused(few: Any, many: Any) -> None:
    with pytest.raises(NotRegular):
        extended(few, many, 3)


def test_rounds_are_compared_with_those_before() -> None:
    """Numbers that do not go on by the same amount are no rounds, nor is one round."""

    def squares(blocks: int) -> tuple[tuple[str, int], ...]:
        return tuple(("place", block * block) for block in range(blocks))

    with pytest.raises(NotRegular):
        extended(squares(5), squares(6), 9)
    with pytest.raises(NotRegular):
        extended(_chain(1), _chain(2), 9)


def test_a_tuple_that_shrinks_is_refused() -> None:
    with pytest.raises(NotRegular):
        extended(_chain(5), _chain(4), 9)


def test_a_last_round_that_differs_in_steps() -> None:
    """Items of one kind, so that only their numbers tell where the rounds are."""

    def numbers(rounds: int) -> tuple[int, ...]:
        regular = [10 * number + part for number in range(rounds) for part in (0, 3)]
        last = 10 * rounds + 1
        return (*regular, last, last + 3)

    assert extended(numbers(4), numbers(5), 9) == numbers(13)
