"""Torch is asked what its methods refuse, of samples."""

from __future__ import annotations

import pytest
import torch

from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.tensors.arguments.refused import check_arguments
from dynamo_capture.values import Const, ListValue, SliceValue

_LOOKS_NAMES_UP = torch.__version__.startswith(("2.11.", "2.12."))
"""``size`` took names of dimensions: one that a tensor does not have is a RuntimeError."""
REFUSED = [
    ("dense_dim", (int,)), ("requires_grad_", (2,)), ("__setitem__", (range(3),)), ("__getitem__", ()),
    ("_is_view", ((), len)), ("unsqueeze" if _LOOKS_NAMES_UP else "size", ("a",)),
]  # fmt: skip
TAKEN = [
    ("dense_dim", ()), ("requires_grad_", (False,)), ("__getitem__", (slice(0, 1),)), ("__getitem__", ((0, 1),)),
    ("__setitem__", (0, 2.5)), ("size", (1,)), ("as_subclass", (int,)), ("narrow", (0, 0, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "given"), REFUSED)
def test_refused(tx, tensor, name, given) -> None:
    with pytest.raises(GraphBreak, match="CAP230"):
        check_arguments(tx, tensor, name, [Const(value) for value in given], {})


@pytest.mark.parametrize(("name", "given"), TAKEN)
def test_taken(tx, tensor, name, given) -> None:
    check_arguments(tx, tensor, name, [Const(value) for value in given], {})


def test_values_of_the_trace(tx, tensor) -> None:
    check_arguments(tx, tensor, "equal", [tensor], {})
    check_arguments(tx, tensor, "__getitem__", [SliceValue((Const(0), Const(1), Const(None)))], {})
    with pytest.raises(GraphBreak, match="CAP230"):
        check_arguments(tx, tensor, "requires_grad_", [], {"requires_grad": ListValue([])})
