"""What torch says of stand-ins is the program's own only where it would say the same of what they stand for."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from dynamo_capture.semantics.tensors.results.refusals import worded_otherwise
from dynamo_capture.values import Const, ListValue, TupleValue

MM = torch.Tensor.mm
OTHER = [
    (MM, "mm", TypeError("invalid combination of arguments - got (Tensor, str)"), []),
    (F.relu, "relu", TypeError("missing 1 required positional argument"), []),
    (MM, "mm", AssertionError("must be int64"), []),
    (MM, "mm", TypeError("must be Tensor, not tuple"), [TupleValue([], torch.Size)]),
    (MM, "mm", TypeError("must be Tensor, not list"), [ListValue([TupleValue([], torch.Size)])]),
]
OWN = [
    (MM, "mm", TypeError("must be Tensor, not tuple"), [TupleValue([])]),
    (MM, "mm", RuntimeError("mat1 and mat2 shapes cannot be multiplied"), [Const(1)]),
    (F.relu, "relu", AssertionError("is not"), []),
]


@pytest.mark.parametrize(("function", "name", "error", "args"), OTHER)
def test_other_words(tx, function, name, error, args) -> None:
    assert worded_otherwise(tx, function, name, error, args)


@pytest.mark.parametrize(("function", "name", "error", "args"), OWN)
def test_own_words(tx, function, name, error, args) -> None:
    assert worded_otherwise(tx, function, name, error, args) is None


def test_memory_is_looked_at_before_shapes(tx, tensor) -> None:
    refused = RuntimeError("output with shape [] doesn't match")
    assert worded_otherwise(tx, torch.Tensor.add_, "add_", refused, [tensor, tensor])
    assert worded_otherwise(tx, MM, "mm", refused, [tensor, tensor]) is None
