"""Existing objects as values, and the guards of reading them."""

from __future__ import annotations

import threading

import numpy
import pytest
import torch

from dynamo_capture.foundation.known_objects import is_known
from dynamo_capture.values import (
    BuiltinMethod,
    Const,
    DictValue,
    ListValue,
    ObjectValue,
    OpaqueValue,
    TensorValue,
)
from dynamo_capture.values.tensors.array import ArrayValue
from dynamo_capture.variable_builder.objects import wraps
from fx_interface.source import LocalSource


def _kinds(tx):
    return [type(record).__name__ for record in tx.guards.records]


def test_what_is_known():
    assert all(
        map(is_known, (1, "a", None, (1, (2,)), torch.float32, int, len, numpy.float32(1), frozenset({1})))
    )
    assert not any(map(is_known, ([], {}, object(), (1, []), torch.ones(1), numpy.float32("nan"))))


def test_a_constant_is_guarded_when_its_value_is_used(tx, read):
    value = read("a")
    assert _kinds(tx) == []
    assert value.as_constant() == "a"
    assert _kinds(tx) == ["EqualsConstant"]


@pytest.mark.parametrize(
    ("real", "kind"),
    [
        ([1], ListValue), ({}, DictValue), (torch.ones(1), TensorValue), (len, Const), ([].append, BuiltinMethod),
        (numpy.ones(1), ArrayValue), (numpy.int64(1), Const), (threading.local(), ObjectValue),
    ],
)  # fmt: skip
def test_the_value_of_a_kind_of_object(read, real, kind):
    assert isinstance(read(real), kind)


def test_one_object_on_two_paths_is_one_value(tx, read):
    real = []
    assert read(real, "a") is read(real, "b")
    assert _kinds(tx)[-1] == "SameObject"


def test_what_cannot_be_followed_may_be_passed_on(tx, read):
    class Items(set):
        pass

    value = read(Items())
    assert isinstance(value, OpaqueValue)
    assert value.reason.code == "CAP213"
    assert _kinds(tx) == ["TypeIs"]


def test_what_is_only_passed_on_must_be_there(tx):
    from fx_interface.source import InstanceDictSource, ItemSource

    tx.wrap("a", ItemSource(InstanceDictSource(LocalSource("x")), "name"))
    tx.wrapping.guard_presence()
    assert _kinds(tx) == ["KeyPresent"]


def test_a_kind_has_one_wrapper():
    with pytest.raises(ValueError, match="declared twice"):
        wraps(list)(lambda tx, real, source: Const(1))
