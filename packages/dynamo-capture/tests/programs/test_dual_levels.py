"""Dual tensors that the program makes itself, in ``with forward_ad.dual_level():``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import forward_ad
from torch.nn import functional as F

from dynamo_capture import CaptureError, optimize


def _one(x, t):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        found = forward_ad.unpack_dual(torch.sin(dual) * 2)
    return found.primal, found.tangent


def _two(x, t):
    with forward_ad.dual_level():
        a, b = forward_ad.make_dual(x, t), forward_ad.make_dual(x * 2, t + 1)
        y = torch.stack([a * b, a + 1, torch.where(b > 0, a, b)]).sum(0) @ x
        value, change = forward_ad.unpack_dual(y)
    return value, change, change * 2


def _without_change(x, t):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        answers = [forward_ad.unpack_dual(part) for part in (dual.detach(), dual > 0, x, dual.sign() * 0 + x)]
    return [(part.primal, part.tangent is None) for part in answers], answers[3].tangent


def _changes_of_changes(x, t):
    with forward_ad.dual_level():
        change = forward_ad.unpack_dual(forward_ad.make_dual(x, t).exp()).tangent
        again = forward_ad.unpack_dual(forward_ad.make_dual(x + 0, change).tanh())
    return again.tangent, again.primal


def _left(x, t):
    """A dual tensor has no change when the level is left."""
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        y = dual.cos()
    return y, dual * 2, y + x


def _several(x, t):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        value, index = dual.max(0)
        parts = [
            value,
            *dual.chunk(2),
            dual[0] * 2,
            dual.view(3, 1).T,
            dual.reshape(1, -1).exp(),
            dual.contiguous(),
        ]
        changes = [forward_ad.unpack_dual(part).tangent for part in parts]
    return changes, index, dual.shape, dual.dim(), dual.is_floating_point()


def _twice(x, t):
    found = []
    for factor in (1, 2):
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x * factor, t)
            found.append(forward_ad.unpack_dual(F.softmax(dual, 0)).tangent)
    return torch.stack(found)


def _by_functions(x, t):
    level = forward_ad.enter_dual_level()
    dual = forward_ad.make_dual(x, t, level=level)
    found = forward_ad.unpack_dual(dual.pow(3), level=level)
    forward_ad.exit_dual_level(level=level)
    return found.tangent, level


CAPTURED = [_one, _two, _without_change, _changes_of_changes, _left, _several, _twice, _by_functions]


def _layer(x, t):
    layer = torch.nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight.fill_(0.5)
        layer.bias.zero_()
    return layer(x)


def _args(requires_grad: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor([0.3, -1.2, 2.0], requires_grad=requires_grad), torch.tensor([1.0, 0.5, -2.0])


@pytest.mark.parametrize("program", CAPTURED)
def test_one_graph(whole, program) -> None:
    _one(*_args())  # torch loads the rest of it when it is first called
    whole(program, _args(), _args())


@pytest.mark.parametrize("program", [_one, _two, _changes_of_changes, _by_functions])
def test_gradients_of_changes(program: Callable[..., Any]) -> None:
    gradients = []
    for function in (program, optimize(lambda graph, inputs: graph.forward, fullgraph=True)(program)):
        x, t = _args(requires_grad=True)
        found = function(x, t)
        parts = found if isinstance(found, tuple) else (found,)
        sum(part.sum() for part in parts if isinstance(part, torch.Tensor)).backward()
        gradients.append(x.grad)
    torch.testing.assert_close(gradients[1], gradients[0], rtol=0, atol=0)


def test_parameters_of_a_module(whole) -> None:
    def program(x, weight, change):
        layer = torch.nn.Linear(3, 2, bias=False)
        del layer.weight
        with forward_ad.dual_level():
            layer.weight = forward_ad.make_dual(weight, change)
            found = forward_ad.unpack_dual(layer(x))
        return found.tangent

    _one(*_args())
    whole(program, (torch.randn(4, 3), torch.randn(2, 3), torch.randn(2, 3)))


def _written_by_its_base(x, t):
    y = x * 1
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(y, t)
        first = dual * 2
        y.mul_(3)
        return forward_ad.unpack_dual(dual * 2 + first)


def _view_is_written(x, t):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x * 1, t)
        dual[0].mul_(2)
        return forward_ad.unpack_dual(dual)


def _written(x, t):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x * 1, t)
        dual.mul_(2)
        return forward_ad.unpack_dual(dual).tangent


def _printed(x, t):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        y = dual * 2
        print(end="")
        return forward_ad.unpack_dual(y * 3).tangent


def _differentiated(x, t):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.requires_grad_(), t)
        (gradient,) = torch.autograd.grad((dual**3).sum(), x, create_graph=True)
        return forward_ad.unpack_dual(gradient).tangent.detach()


def _checkpointed(x, t):
    from torch.utils.checkpoint import checkpoint

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        return forward_ad.unpack_dual(checkpoint(torch.sin, dual, use_reentrant=False)).tangent


def _of_numbers(x, t):
    with forward_ad.dual_level():
        return x * forward_ad.make_dual(x, t).sum().item()


def _left_open(x, t):
    forward_ad.enter_dual_level()
    return forward_ad.make_dual(x, t) * 2


def _other_form(x, t):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(forward_ad.make_dual(x, t.double()))


def _with_max(x, t):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x[0], t[0])
        return forward_ad.unpack_dual(max(0, dual) + max(1, dual) + dual).tangent


class _Tripled(torch.autograd.Function):
    """Whose ``jvp`` is not the derivative of its forward."""

    @staticmethod
    def forward(ctx, x):
        return x**2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2

    @staticmethod
    def jvp(ctx, change):
        return change * 3


class _Reversed(torch.autograd.Function):
    """Which has no ``jvp``."""

    @staticmethod
    def forward(ctx, x):
        return x**2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


def _custom_function(x, t):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(_Tripled.apply(forward_ad.make_dual(x, t))).tangent


def _custom_function_without_jvp(x, t):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(_Reversed.apply(forward_ad.make_dual(x, t))).tangent


def _not_differentiated(x, t):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        with forward_ad._set_fwd_grad_enabled(False):
            made = dual.sin()
        return made, forward_ad.unpack_dual(made).tangent, forward_ad.unpack_dual(dual.cos()).tangent


OTHERS = [
    _custom_function,
    _custom_function_without_jvp,
    _not_differentiated,
    _written_by_its_base,
    _view_is_written,
    _written,
    _printed,
    _differentiated,
    _checkpointed,
    _of_numbers,
    _left_open,
    _other_form,
    _with_max,
]


def _outcome(program: Callable[..., Any]) -> str:
    try:
        return str(program(*_args()))
    except RuntimeError as error:
        return str(error)
    finally:
        if forward_ad._current_level >= 0:
            forward_ad.exit_dual_level()


@pytest.mark.parametrize("program", OTHERS)
def test_others_are_as_in_eager(program: Callable[..., Any]) -> None:
    compiled = optimize(lambda graph, inputs: graph.forward)(program)
    for _ in range(2):
        assert _outcome(compiled) == _outcome(program)


def test_what_ends_the_graph_is_told() -> None:
    with pytest.raises(CaptureError, match="writes to its argument"):
        optimize(lambda graph, inputs: graph.forward, fullgraph=True)(_written)(*_args())
