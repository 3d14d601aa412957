"""Objects of subclasses of ``functools.partial`` that a program makes."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from dynamo_capture import optimize


class _Plain(partial):
    pass


class _Slot(partial):
    __slots__ = ("func",)

    def __init__(self, func):
        self.func = func


class _Noted(partial):
    def __init__(self, function, *args, **kwargs):
        self.note = len(args)

    @property
    def doubled(self):
        return self.keywords["k"] * 2


class _Adds(partial):
    def __call__(self, *args, **kwargs):
        return super().__call__(*args, **kwargs) + 1


class _New(partial):
    def __new__(cls, function, number):
        return super().__new__(cls, function, number)


def _scaled(x, y=1, k=3):
    return x * y + k


def plain(x):
    return _Plain(_scaled, x)(2)


def own_slot(x):
    made = _Slot(partial(_scaled, x))
    return made(3) + made.func(4), made.args[0].cos(), isinstance(made, partial), type(made).__name__


def own_attribute(x):
    made = _Noted(_scaled, x, k=5)
    return made(2) * made.doubled * made.note, made.keywords, len(made.args), made.func is _scaled


def own_call(x):
    return _Adds(_scaled, k=2)(x)


def handed_back(x):
    shared = _Plain(_scaled, x)
    return x + 1, shared, [shared, _Noted(_scaled, 1, 2, k=3)], _Adds(_scaled)


def of_another(x):
    inner = _Plain(_scaled, x)
    noted = _Noted(_scaled, x)
    one, two = _Plain(partial(inner, 2)), partial(noted, 2)
    return one(), two(), one.func is _scaled, two.func is noted, _Plain(_Slot(partial(_scaled, x))).args[0]


def a_key(x):
    made = _Plain(_scaled, x)
    return {made: 1}[made], made == made, made(1)


def over_a_break(x):
    made = _Noted(_scaled, x, k=4)
    made.extra = x + 1
    twice = [made, made]
    print(end="")
    return made(2), made.extra, made.note, twice[0] is twice[1], made


def slot_over_a_break(x):
    made = _Slot(partial(_scaled, x))
    print(end="")
    return made(2) + made.func(1)


def keywords_over_a_break(x):
    made = _Plain(_scaled)
    made.keywords["k"] = 7
    print(end="")
    made.keywords["y"] = 2
    return made(x)


def own_new(x):
    return _New(_scaled, 2)(x)


def without_a_function(x):
    return _Plain()


def of_no_function(x):
    return _Plain(3, x)


_WHOLE = [plain, own_slot, own_attribute, own_call, handed_back, of_another, a_key]
_OTHERS = [
    over_a_break,
    slot_over_a_break,
    keywords_over_a_break,
    own_new,
    without_a_function,
    of_no_function,
]


def _shown(value: Any) -> Any:
    if isinstance(value, partial):
        held = partial.__reduce__(value)[2]
        return type(value).__name__, held[0].__name__, _shown(held[1:])
    if isinstance(value, (list, tuple)):
        return [_shown(item) for item in value]
    if isinstance(value, dict):
        return {key: _shown(item) for key, item in value.items()}
    return value.tolist() if isinstance(value, torch.Tensor) else value


def _outcome(function: Any, x: torch.Tensor) -> Any:
    try:
        return _shown(function(x))
    except TypeError as error:
        return str(error)


@pytest.mark.parametrize("program", [*_WHOLE, *_OTHERS])
def test_they_are_those_of_eager(program: Any) -> None:
    graphs: list[Any] = []
    backend = lambda graph, inputs: graphs.append(graph) or graph
    captured = optimize(backend, fullgraph=program in _WHOLE)(program)
    for count in (2, 3, 3):
        x = torch.randn(count)
        assert _outcome(captured, x) == _outcome(program, x)
    if program in _WHOLE:
        assert len(graphs) == 2
