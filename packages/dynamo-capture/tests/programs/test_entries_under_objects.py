"""Entries of dicts whose keys are objects: others in each call, which a version must not look up."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dynamo_capture import optimize


class Plain:
    pass


class Making(dict[Any, Any]):
    asked = 0

    def __missing__(self, key: Any) -> Any:
        self.asked += 1
        self[key] = made = {}
        return made


@pytest.mark.parametrize("make_key", [lambda: torch.ones(2), Plain, lambda: (Plain(), 1)])
@pytest.mark.parametrize("make_dict", [lambda: collections.defaultdict(dict), Making, dict])
def test_other_keys_in_each_call(make_dict: Callable[[], Any], make_key: Any) -> None:
    def program(x: torch.Tensor, found: Any, key: Any) -> torch.Tensor:
        if type(found) is dict:
            found[key] = {}
        else:
            found[key]["seen"] = 1
        print(end="")
        return x + 1

    run = optimize(lambda graph, inputs: graph)(program)
    kept = []  # so that no key has the place of another one
    for _ in range(3):
        found, first, key = make_dict(), make_key(), make_key()
        kept += [first, key]
        dict.__setitem__(found, first, {"seen": 2})
        run(torch.ones(2), found, key)
        assert [value for _, value in found.items()] == [
            {"seen": 2},
            {} if type(found) is dict else {"seen": 1},
        ]
        assert all(one is other for one, other in zip(found, (first, key), strict=True))
        assert getattr(found, "asked", 1) == 1
