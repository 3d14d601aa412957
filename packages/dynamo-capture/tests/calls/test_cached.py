"""Functions with a cache."""

from __future__ import annotations

import functools

import pytest
import torch

from dynamo_capture.errors import GraphBreak
from dynamo_capture.values import Const, TensorValue


def test_what_is_in_the_cache_is_read(tx):
    @functools.lru_cache(None)
    def table(n):
        return torch.ones(n)

    found = Const(table).call(tx, [Const(3)], {})
    assert isinstance(found, TensorValue)
    assert found.real is table(3)
    assert Const(table).call(tx, [Const(3)], {}) is found
    assert table.cache_info().currsize == 1


def test_after_changes_the_graph_ends(tx, read):
    @functools.lru_cache(None)
    def size():
        return 1

    known = Const(size).call(tx, [], {})
    read([], "items").call_method(tx, "append", [Const(1)], {})
    assert Const(size).call(tx, [], {}) is known
    size.cache_clear()
    with pytest.raises(GraphBreak):
        Const(functools.lru_cache(None)(lambda: 2)).call(tx, [], {})
