"""A new ``**kwargs`` dict at every call must not keep the evaluator from its plan, and is looked at every time."""

from __future__ import annotations

from typing import Any

import torch

import fx_guards
from fx_interface.source import AttrSource, ItemSource, LocalSource


class Owner:
    def __init__(self) -> None:
        self.flag = True


def call(owner: Owner, **kwargs: Any) -> None:
    """The function whose frame is guarded."""


def evaluator() -> Any:
    owner, named = LocalSource("owner"), LocalSource("kwargs")
    facts = [
        fx_guards.EqualsConstant(AttrSource(owner, "flag"), True),
        fx_guards.DictKeys(named, ("x",)),
        fx_guards.tensor_match(ItemSource(named, "x"), torch.ones(2)),
    ]
    return fx_guards.build(facts, varnames=call.__code__.co_varnames)


def test_every_new_dict_is_looked_at() -> None:
    check, owner = evaluator(), Owner()
    for _ in range(20):
        assert check.check_call(call, owner, {"x": torch.zeros(2)})
    assert not check.check_call(call, owner, {"x": torch.zeros(3)})
    assert not check.check_call(call, owner, {"x": torch.zeros(2), "y": 1})
    assert not check.check_call(call, owner, {})
    assert check.check_call(call, owner, {"x": torch.zeros(2)})


def test_the_rest_is_still_watched() -> None:
    check, owner = evaluator(), Owner()
    for _ in range(20):
        assert check.check_call(call, owner, {"x": torch.zeros(2)})
    owner.flag = False
    assert not check.check_call(call, owner, {"x": torch.zeros(2)})
    owner.flag = True
    assert check.check_call(call, owner, {"x": torch.zeros(2)})
