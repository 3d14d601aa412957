"""States of generators of random numbers are put back, whatever was drawn."""

from __future__ import annotations

import random

import pytest

from dynamo_capture.runtime.calls import random_states


class _Own(random.Random):
    """A generator of a class of the program."""


@pytest.mark.parametrize("cls", [random.Random, _Own])
@pytest.mark.parametrize("draws", [0, 1, 623, 624, 1300])
def test_what_was_drawn_is_drawn_again(cls: type[random.Random], draws: int) -> None:
    generator = cls(3)
    for _ in range(draws):
        generator.random()
    generator.gauss(0, 1)
    own, module = generator.getstate(), random.getstate()
    states = random_states.generator_states((generator,))
    drawn = [random.random(), generator.gauss(0, 1), *[generator.random() for _ in range(700)]]
    for put_back in states:
        put_back()
    assert (generator.getstate(), random.getstate()) == (own, module)
    assert [random.random(), generator.gauss(0, 1), *[generator.random() for _ in range(700)]] == drawn


def test_the_bytes_are_known() -> None:
    assert random_states.is_known()
