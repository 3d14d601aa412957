"""Operators and expressions out of a file."""

from __future__ import annotations

import struct

import pytest
import torch

from fxstack_artifact import ArtifactError
from fxstack_artifact.program.operators import operator_call, operator_named
from fxstack_artifact.program.sizes import postfix


def test_a_call_is_filled_with_run_time_values() -> None:
    call = operator_call(
        {
            "op": "op:aten.addcmul.default",
            "args": [{"slot": ["tensor", 0]}, {"slot": ["tensor", 0]}, {"slot": ["tensor", 1]}],
            "kwargs": {"value": {"slot": ["float", 2]}},
            "results": 1,
        }
    )
    x, y = torch.ones(2), torch.full((2,), 3.0)
    (result,) = call(x, y, *struct.unpack("q", struct.pack("d", 0.5)))
    assert torch.equal(result, torch.full((2,), 2.5))


@pytest.mark.parametrize(
    "name", ["os::system", "aten::add.Nothing", "aten::__class__", "aten", "aten::add.Tensor.x", "::"]
)
def test_only_operators_are_found(name: str) -> None:
    with pytest.raises(ArtifactError, match="FXA108"):
        operator_named(name)


def test_expressions() -> None:
    assert postfix([1, 0, 0, 7, 3, 0, 2, 2])([5]) == 37
    assert postfix([0, -7, 0, 2, 4])([]) == -4
    with pytest.raises(ArtifactError, match="FXA108"):
        postfix("x")
