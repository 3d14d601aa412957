"""Python's operators on stand-ins broadcast and record the primitive of that name."""

from __future__ import annotations

import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of
from primtorch_decomps.prims import Call, PrimTensor, Trace, broadcast_to, keep_dims, ops, tracing


def entered(*sizes: int) -> PrimTensor:
    spec = spec_of(torch.ones(*sizes))
    return PrimTensor.of(spec, Call("placeholder", (), {}, {}, spec))


def test_operators() -> None:
    x, y = entered(3, 1), entered(4)
    with tracing(Trace(ShapeEnv(), recording=True)) as trace:
        results = [x + y, 2.0 * x, 1.0 - x, x / 2.0, -x, 3.0 / y, (x + y) * (x + y)]
    assert [r.sizes for r in results] == [(3, 4), (3, 1), (3, 1), (3, 1), (3, 1), (4,), (3, 4)]
    names = [call.target.name for call in trace.calls]
    assert names.count("broadcast_in_dim") == 2
    assert {"add", "mul", "sub", "div", "neg"} < set(names)
    subtraction = next(call for call in trace.calls if call.target.name == "sub")
    assert subtraction.args[0] == 1.0


def test_kept_dimensions() -> None:
    x = entered(2, 3, 4)
    with tracing(Trace(ShapeEnv())):
        assert keep_dims(ops.sum(x, (0, 2)), (0, 2), 3).sizes == (1, 3, 1)
        assert broadcast_to(entered(3, 1), (2, 3, 4)).sizes == (2, 3, 4)
