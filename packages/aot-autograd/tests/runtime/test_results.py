"""Views among the results are, for autograd, as old as eager's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch


def _of_the_input(x: torch.Tensor) -> Any:
    view = x[1:]
    x.add_(1)
    return x, view


def _without_gradients(x: torch.Tensor) -> Any:
    with torch.no_grad():
        view = x[1:]
    x.add_(1)
    return x, view


def _one_of_several(x: torch.Tensor) -> Any:
    view = x.unbind()[1]
    x.add_(1)
    return x, view


def _of_a_view(x: torch.Tensor) -> Any:
    view = x[1:].t()
    x[0].add_(1)
    return x, view


def _through_the_view(x: torch.Tensor) -> Any:
    view = x[1:]
    view.add_(1)
    return x, view


def _made_afterwards(x: torch.Tensor) -> Any:
    view = x[1:]
    x.add_(1)
    return x, view[1:]


def _of_a_result(x: torch.Tensor) -> Any:
    y = x * 2
    view = y[1:]
    y.add_(1)
    return y, view


def _by_data(x: torch.Tensor) -> Any:
    view = x[1:]
    x.data.add_(1)
    return x, view


def _requires_grad(base: torch.Tensor, view: torch.Tensor) -> Any:
    base.requires_grad_()


def _view_requires_grad(base: torch.Tensor, view: torch.Tensor) -> Any:
    view.requires_grad_()


def _gets_a_history(base: torch.Tensor, view: torch.Tensor) -> Any:
    base.mul_(torch.ones((), requires_grad=True))


def _outcome(program: Callable[..., Any], change: Callable[..., Any]) -> Any:
    base, view = program(torch.zeros(4, 5))
    try:
        change(base, view)
        name = type(view.grad_fn).__name__
        if view.requires_grad:
            (view * 3).sum().backward()
    except RuntimeError as error:
        return str(error)
    return name, view.is_leaf, view._version, [str(one.grad) for one in (base, view) if one.is_leaf]


@pytest.mark.parametrize("change", [_requires_grad, _view_requires_grad, _gets_a_history])
@pytest.mark.parametrize(
    "program",
    [
        _of_the_input,
        _without_gradients,
        _one_of_several,
        _of_a_view,
        _through_the_view,
        _made_afterwards,
        _of_a_result,
        _by_data,
    ],
)
def test_a_view_made_before_a_write_to_its_base(compiled: Any, program: Any, change: Any) -> None:
    """Its base gets a history afterwards: eager makes that of the view anew, or refuses to."""
    expected, actual = _outcome(program, change), _outcome(compiled(program), change)
    assert actual == expected
