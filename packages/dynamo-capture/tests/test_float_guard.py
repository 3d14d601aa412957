"""Which side of a number a float lies on."""

import math

from dynamo_capture.float_guard import FloatCompares
from fx_interface.source import LocalSource

SOURCE = LocalSource("x")


def test_holds_for_floats_with_the_same_answer():
    above = FloatCompares(SOURCE, ">", 1, True)
    assert above.holds(1.5)
    assert not above.holds(1.0)
    assert not above.holds(math.nan)
    assert not above.holds(2), "an int is computed with otherwise"
    assert FloatCompares(SOURCE, ">", 1, False).holds(math.nan)


def test_explains_itself():
    assert FloatCompares(SOURCE, ">", 1, True).explain(0.5) == "expected x > 1 to be True, got 0.5"
