"""Programs that look at their own frames and at those of their callers."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any

import pytest
import torch

from dynamo_capture import optimize


def _name() -> str:
    return sys._getframe(1).f_code.co_name


def _line() -> int:
    return sys._getframe(1).f_lineno


def _line_by_inspect() -> int:
    return inspect.currentframe().f_back.f_lineno


def _name_two_up() -> str:
    return sys._getframe(2).f_code.co_name


def _between() -> str:
    return _name_two_up()


def _own() -> Any:
    return sys._getframe()


def _lines_of_caller():
    yield sys._getframe(1).f_lineno
    yield sys._getframe().f_lineno


class _Named(torch.nn.Module):
    def forward(self, x):
        return x * len(sys._getframe(1).f_code.co_name)  # torch's, between the module and its caller


class _Asks:
    @property
    def line(self) -> int:
        return sys._getframe(1).f_lineno

    def __add__(self, other: int) -> int:
        return sys._getframe(1).f_lineno + other


_NAMED, _ASKS, _PARTIAL = _Named(), _Asks(), functools.partial(_line)


def name(x):
    return x.sin() * len(_name())


def lines(x):
    y = x * _line()
    return (y *
        _line())  # fmt: skip


def line_by_inspect(x):
    return x * _line_by_inspect()


def two_up(x):
    return x * len(_between())


def where_it_is_by_now(x):
    frame = sys._getframe()
    y = x * frame.f_lineno
    return y * frame.f_lineno


def in_a_list(x):
    frames = [sys._getframe()]
    return x * frames[0].f_lineno


def partial(x):
    return x * _PARTIAL()


def own_code(x):
    return x * (1 if sys._getframe().f_code is own_code.__code__ else 2)


def kept_behind_a_break(x):
    frame = sys._getframe()
    y = x * frame.f_lineno
    print(end="")
    return y.sin() * len(frame.f_code.co_name) * frame.f_lineno


def asked_behind_a_break(x):
    y = x * 2
    print(end="")
    return y * sys._getframe().f_lineno * len(_name())


def in_a_module(x):
    return _NAMED(x)


def in_a_callback(x):
    return x * sum(map(lambda value: sys._getframe(1).f_lineno + value, [1, 2]))


def in_special_methods(x):
    return x * _ASKS.line + (_ASKS + 1)


def in_a_generator(x):
    return x * sum(_lines_of_caller())


def of_the_caller(x):
    return x * len(sys._getframe(1).f_code.co_name)


def the_same_one(x):
    frame = sys._getframe()
    return x + 1, frame is sys._getframe(), frame.f_back.f_code.co_name


def when_it_has_returned(x):
    frame = _own()
    return x * len(frame.f_code.co_name), frame.f_back is None


def variables(x):
    number = 3
    return x * sys._getframe().f_locals["number"]


def too_deep(x):
    return x, sys._getframe(5000)


_WHOLE = [name, lines, line_by_inspect, two_up, where_it_is_by_now, in_a_list, partial, own_code]
_IN_PYTHON = [
    kept_behind_a_break, asked_behind_a_break, in_a_module, in_a_callback, in_special_methods, in_a_generator,
    of_the_caller, the_same_one, when_it_has_returned, variables, too_deep,
]  # fmt: skip


def _outcome(function: Any, x: torch.Tensor) -> str:
    try:
        return repr(function(x))
    except ValueError as error:
        return repr(error)


@pytest.mark.parametrize("program", [*_WHOLE, *_IN_PYTHON])
def test_frames_are_those_of_eager(program: Any) -> None:
    graphs: list[Any] = []
    captured = optimize(lambda graph, inputs: graphs.append(graph) or graph)(program)
    for count in (2, 3, 3):
        x = torch.randn(count)
        assert _outcome(captured, x) == _outcome(program, x)
    if program in _WHOLE:
        assert len(graphs) == 2
