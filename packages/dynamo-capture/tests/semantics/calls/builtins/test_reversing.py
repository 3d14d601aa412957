"""``reversed``."""

from __future__ import annotations

import pytest


class Own:
    def __reversed__(self):
        return iter("own")


class Indexed:
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return index * 10


@pytest.mark.parametrize(
    "program",
    [
        lambda: (
            tuple(reversed([1, 2])),
            tuple(reversed("ab")),
            tuple(reversed(range(0, 7, 3))),
            tuple(reversed({1: 2, 3: 4})),
        ),
        lambda: (tuple(reversed({1: 2}.items())), tuple(reversed(Own())), tuple(reversed(Indexed()))),
        lambda: type(reversed([1])).__name__,
        lambda: reversed(5),
    ],
)
def test_it_answers_as_python(agrees, program):
    agrees(program)
