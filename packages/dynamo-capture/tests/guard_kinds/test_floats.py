"""Which side of a number a float lies on."""

import math

import torch

from dynamo_capture.guard_kinds.floats import FloatCompares, FloatFacts
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


def _facts(program, *sources, count):
    return FloatFacts(sources[0], sources[1:], count, (program,))


STEP, OTHER, RATE = LocalSource("step"), LocalSource("other"), LocalSource("rate")
PROGRAM = ("def holds(x0):\n    y0 = 1.0 / x0\n    return (y0 < 1) is True", ((0,),))


def test_facts_about_what_a_tensor_holds():
    guard = _facts(PROGRAM, STEP, count=1)
    assert guard.holds((torch.tensor(2.0),))
    assert not guard.holds((torch.tensor(0.5),))
    assert not guard.holds((torch.tensor(0.0),)), "Python would raise"
    assert guard.explain((torch.tensor(0.5),)) == "expected 1.0 / step < 1, got step = 0.5"


def test_a_tensor_whose_memory_others_share_is_not_trusted():
    guard = _facts(PROGRAM, STEP, OTHER, count=1)
    step = torch.tensor(2.0)
    assert guard.holds((step, torch.tensor(1.0)))
    assert not guard.holds((step, step.view(1)))
    assert not guard.holds((torch.full((3,), 2.0)[0], torch.tensor(1.0)))


def test_facts_about_floats_and_tensors():
    guard = _facts(("def holds(x0, x1):\n    return (x0 < x1) is True", ((0, 1),)), RATE, STEP, count=2)
    assert guard.holds((0.5, torch.tensor(2.0)))
    assert not guard.holds((2.5, torch.tensor(2.0)))
    assert not guard.holds(("0.5", torch.tensor(2.0)))
