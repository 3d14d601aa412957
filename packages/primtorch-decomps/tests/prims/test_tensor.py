"""Recording: equal calls once, numbers told apart, one trace a thread."""

from __future__ import annotations

import threading

import pytest
import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of
from primtorch_decomps.prims import Call, PrimTensor, Trace, current_trace, freeze, ops, tracing


def entered(x: torch.Tensor) -> PrimTensor:
    return PrimTensor.of(spec_of(x), Call("placeholder", (), {}, {}, spec_of(x)))


def test_equal_calls_are_recorded_once() -> None:
    x = entered(torch.ones(3))
    with tracing(Trace(ShapeEnv(), recording=True)) as trace:
        assert ops.exp(x) is ops.exp(x)
        assert ops.add(x, 1.0) is not ops.add(x, 1)
        assert ops.add(x, 0.0) is not ops.add(x, -0.0)
        assert ops.add(x, float("nan")) is ops.add(x, float("nan"))
    assert len(trace.calls) == 6


def test_a_run_for_specs_records_nothing() -> None:
    x = PrimTensor.of(spec_of(torch.ones(3)))
    with tracing(Trace(ShapeEnv())) as trace:
        assert ops.exp(x).call is None
    assert trace.calls == []


def test_frozen_values() -> None:
    assert freeze([1, (2.0, True)]) == freeze((1, [2.0, True]))
    assert freeze(1) != freeze(1.0)
    assert freeze(True) != freeze(1)
    assert hash(freeze({"a": [1]})) == hash(freeze({"a": (1,)}))


def test_traces_nest_and_belong_to_a_thread() -> None:
    outer, inner = Trace(ShapeEnv()), Trace(ShapeEnv())
    seen: list[str] = []

    def other_thread() -> None:
        try:
            current_trace()
        except AssertionError:
            seen.append("none")

    with tracing(outer):
        with tracing(inner):
            assert current_trace() is inner
        assert current_trace() is outer
        thread = threading.Thread(target=other_thread)
        thread.start()
        thread.join()
    assert seen == ["none"]
    with pytest.raises(AssertionError):
        current_trace()
