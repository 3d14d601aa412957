"""A code object is decoded and analysed once, for as long as it is alive."""

from __future__ import annotations

import gc

from dynamo_capture.bytecode import decoded as module
from dynamo_capture.bytecode.decode import decode
from dynamo_capture.bytecode.decoded import decoded
from dynamo_capture.bytecode.depth import stack_depths
from dynamo_capture.bytecode.liveness import assigned_variables, displaced_cells, live_variables


def program(items, total=0):
    for item in items:
        try:
            total += item
        except TypeError:
            total = len(items)
    return lambda: (total, items)


def test_it_is_known_once():
    facts = decoded(program.__code__)
    assert decoded(program.__code__) is facts
    assert facts.live is facts.live


def test_it_says_what_the_analyses_say():
    facts, body = decoded(program.__code__), decode(program.__code__)
    assert facts.depths == stack_depths(body)
    assert facts.live == live_variables(body)
    assert facts.assigned == assigned_variables(body)
    assert facts.displaced == displaced_cells(body)
    assert any(facts.live)
    assert any(facts.assigned)


def test_it_is_forgotten_with_the_code():
    code = program.__code__.replace(co_name="other")
    key = id(code)
    decoded(code)
    assert key in module._KNOWN
    del code
    gc.collect()
    assert key not in module._KNOWN
