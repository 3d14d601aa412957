"""Tensor methods that the metadata answers."""

from __future__ import annotations

import pytest

from dynamo_capture.tensors import METHODS, method
from dynamo_capture.values import Const


def test_sizes(tx, tensor):
    assert tensor.call_method(tx, "size", [Const(-1)], {}).as_constant() == 3
    assert tensor.call_method(tx, "dim", [], {}).as_constant() == 2
    assert tx.output.calls == 0


def test_a_method_is_declared_once():
    assert "size" in METHODS
    with pytest.raises(ValueError, match="declared twice"):
        method("size")(lambda tx, owner, args, kwargs: None)
