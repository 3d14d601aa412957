"""Compiled code's weak references are no plain ones, which Python shares between all who ask for them."""

import weakref

import torch

from fx_interface.python_runtime.own_references import OwnReference


def test_not_shared_with_plain_references() -> None:
    tensor = torch.ones(2)
    own = OwnReference(tensor)
    plain = weakref.ref(tensor)
    assert own is not plain
    assert [type(one) for one in weakref.getweakrefs(tensor) if type(one) is weakref.ref] == [weakref.ref]
    assert own() is tensor


def test_told_when_the_object_dies() -> None:
    tensor = torch.ones(2)
    own = OwnReference(tensor)
    del tensor
    assert own() is None
