"""Each primitive's computed spec is that of its reference's result, and a recorded call computes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from fx_interface.dialects.prims import PRIMS
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import spec_of
from primtorch_decomps.prims import PrimTensor, Trace, ops, tracing

X = torch.rand(3, 4) + 0.5
Y = torch.rand(3, 4) + 0.5
N = torch.randint(1, 5, (3, 4))
CPU = torch.device("cpu")
BINARY_OF_INTEGERS = ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right")
CALLS: dict[str, tuple[Any, ...]] = {
    "where": (X > 1, X, Y),
    "convert_dtype": (X, torch.int64),
    "broadcast_in_dim": (torch.rand(3, 1), (2, 3, 4), (1, 2)),
    "reshape": (X.t(), (2, 6)),
    "permute": (X, (1, 0)),
    "slice": (X, (0, 1), (3, 4), (1, 2), (3, 2)),
    "flip": (X, (0,)),
    "pad": (X, (1, 0), (0, 2), 0.5),
    "cat": ((X, Y), 1),
    "index": (torch.rand(5, 6, 7), (None, N, N)),
    "gather": (X, 1, N - 1),
    "argmax": (X, 1),
    "argmin": (X, 0),
    "full": ((2, 3), 1.5, torch.float32, CPU),
    "iota": (4, 1, 2, torch.int64, CPU),
    "bitwise_not": (N,),
    "logical_not": (X > 1,),
}
for _name in ("sum", "prod", "amax", "amin"):
    CALLS[_name] = (X, (0,))
for _name in ("any", "all"):
    CALLS[_name] = (X > 1, (0, 1))


def arguments(name: str) -> tuple[Any, ...]:
    if name in CALLS:
        return CALLS[name]
    if name in BINARY_OF_INTEGERS:
        return (N, N)
    arity = PRIMS[name].schema.split("->")[0].count("|Number") or 1
    return (X, Y)[:arity]


def proxies(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return PrimTensor.of(spec_of(value))
    return tuple(proxies(item) for item in value) if isinstance(value, tuple) else value


@pytest.mark.parametrize("name", PRIMS)
def test_spec_is_the_reference_s(name: str) -> None:
    args = arguments(name)
    reference_args = args[:-1] if name == "slice" else args
    expected = PRIMS[name](*reference_args)
    with tracing(Trace(ShapeEnv())):
        found = getattr(ops, name)(*proxies(args))
    assert found.sizes == tuple(expected.shape)
    assert found.dtype is expected.dtype


def test_every_primitive_has_a_function() -> None:
    assert [name for name in PRIMS if not isinstance(getattr(ops, name, None), Callable)] == []


@pytest.mark.parametrize("name", ["broadcast_in_dim", "permute", "slice"])
def test_views_know_their_strides(name: str) -> None:
    args = arguments(name)
    expected = PRIMS[name](*(args[:-1] if name == "slice" else args))
    with tracing(Trace(ShapeEnv())):
        assert getattr(ops, name)(*proxies(args)).strides == expected.stride()


def test_nothing_to_do_is_the_tensor_itself() -> None:
    x = PrimTensor.of(spec_of(X))
    with tracing(Trace(ShapeEnv())):
        assert ops.convert_dtype(x, torch.float32) is x
        assert ops.reshape(x, (3, 4)) is x
        assert ops.permute(x, (0, 1)) is x
        assert ops.broadcast_in_dim(x, (3, 4), (0, 1)) is x
        assert ops.slice(x, (0, 0), (3, 4), (1, 1), (3, 4)) is x


def test_operands_must_agree_in_dtype() -> None:
    with tracing(Trace(ShapeEnv())), pytest.raises(AssertionError):
        ops.add(PrimTensor.of(spec_of(X)), PrimTensor.of(spec_of(N)))
