"""Puts back what a program replaced of the names that all programs of a process share: builtins, modules, classes."""

from __future__ import annotations

import builtins
import dataclasses
import functools
import itertools
import math
import operator
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import torch

_OWNERS: tuple[Any, ...] = (
    builtins, dataclasses, functools, itertools, math, operator, torch, torch.nn, torch.nn.functional, torch.nn.init,
    torch.Tensor, torch.nn.Module, torch.nn.Linear, torch.nn.Dropout, torch.nn.Parameter,
)  # fmt: skip
_Space = Mapping[str, Any]
_SPACES: tuple[tuple[Any, _Space], ...] = tuple((owner, vars(owner)) for owner in _OWNERS)
_SAME, _ALL, _LEN = operator.is_, all, len  # programs replace the names themselves
_SETS, _DELETES, _LIST, _IS, _DICT, _ZIP, _MAP = setattr, delattr, list, isinstance, dict, zip, map


def remember() -> Callable[[], None]:
    """What puts everything back to where it is now."""
    before = [_DICT(space) for _, space in _SPACES]

    def restore() -> None:
        for (owner, space), held in _ZIP(_SPACES, before):
            if _LEN(space) != _LEN(held) or not _ALL(_MAP(_SAME, space.values(), held.values())):
                _put_back(owner, space, held)

    return restore


def _put_back(owner: Any, space: _Space, held: _Space) -> None:
    for name in held:
        if name not in space or space[name] is not held[name]:
            _SETS(owner, name, held[name])
    if owner is builtins or not _IS(
        owner, ModuleType
    ):  # a module may have got what it imports when it is asked for
        for name in _LIST(space):
            if name not in held:
                _DELETES(owner, name)
