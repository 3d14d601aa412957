"""What ``operator.itemgetter``, ``attrgetter`` and ``methodcaller`` make."""

from __future__ import annotations

import operator

import pytest

FIRST = operator.itemgetter(0)


@pytest.mark.parametrize(
    "program",
    [
        lambda: (FIRST([3, 4]), operator.itemgetter(1, 0)("ab"), operator.itemgetter(slice(1, 3))("abcd")),
        lambda: (operator.attrgetter("real")(3), operator.attrgetter("real.imag", "denominator")(3)),
        lambda: (operator.methodcaller("upper")("a"), operator.methodcaller("rjust", 3, "-")("a")),
        lambda: operator.itemgetter(5)([1]),
        lambda: operator.attrgetter("no")(1),
        lambda: operator.itemgetter(0)(),
        lambda: FIRST([1], 2),
        lambda: operator.itemgetter(),
    ],
)
def test_they_are_followed(agrees, program):
    agrees(program)
