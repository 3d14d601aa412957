"""``fxstack.compile`` called in a compiled function."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch

import fxstack
from fx_interface.errors import UnknownBackendError


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


def of_a_function(x: torch.Tensor) -> torch.Tensor:
    return fxstack.compile(scaled)(x) * 2


def of_functions_made_inside(x: torch.Tensor) -> torch.Tensor:
    factor = x.shape[0]

    @fxstack.compile
    def first(y: torch.Tensor) -> torch.Tensor:
        return y * factor

    @fxstack.compile(dynamic=None)
    def second(y: torch.Tensor) -> torch.Tensor:
        return first(y) - factor

    return second(x) + fxstack.compile(lambda y: y.cos(), disable=True)(x)


LAYER = torch.nn.Linear(3, 3)


def of_a_module(x: torch.Tensor) -> torch.Tensor:
    return fxstack.compile(LAYER)(x).detach() * 2


@pytest.mark.parametrize(
    "program", [of_a_function, of_functions_made_inside, of_a_module], ids=lambda p: p.__name__
)
def test_with_equal_options_it_is_one_graph(program: Any) -> None:
    fast = fxstack.compile(program, fullgraph=True)
    for _ in range(3):
        x = torch.randn(3)
        torch.testing.assert_close(fast(x), program(x))
    assert len(fast.__fxstack_capture__.report.replacements) == 1


def test_other_options_are_left_to_it() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return fxstack.compile(scaled, backend="eager")(x.exp()) * 2

    x = torch.randn(3)
    torch.testing.assert_close(fxstack.compile(program, backend="aot_eager")(x), program(x))


def test_what_is_compiled_may_leave_the_function() -> None:
    def program(x: torch.Tensor) -> Any:
        compiled = fxstack.compile(functools.partial(torch.mul, x))
        return x + 1, compiled, {"inner": fxstack.compile(scaled, backend="eager")}

    y, compiled, kept = fxstack.compile(program, fullgraph=True)(torch.ones(2))
    assert torch.equal(compiled(y), y)
    assert torch.equal(kept["inner"](y), scaled(y))
    assert kept["inner"].__fxstack_original__ is scaled


def test_what_compile_refuses_is_raised_there() -> None:
    def program(x: torch.Tensor) -> Any:
        try:
            return fxstack.compile(scaled, backend="unheard of")(x)
        except UnknownBackendError as error:
            return x + 1, str(error)

    x = torch.ones(2)
    expected, actual = program(x), fxstack.compile(program)(x)
    assert torch.equal(expected[0], actual[0])
    assert expected[1] == actual[1]
