"""Tensors that are given other sizes and strides in place, computed ones and inputs."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fx_interface.errors import UnsupportedProgramError

X = torch.arange(-2.0, 4.0, dtype=torch.float64).reshape(2, 3)  # sums of gradients are exact in any order


def test_shapes_of_computed_tensors_change_in_place(check: Any) -> None:
    def program(x: torch.Tensor) -> Any:
        y = (x * 2).t_()
        z = (x + 1).unsqueeze_(0)
        z.squeeze_(0).transpose_(0, 1)
        w = x.sin().unsqueeze_(1).squeeze_()
        return y * 3, z + y, w, y

    check(program, torch.randn(2, 3, dtype=torch.float64))
    check(program, torch.randn(2, 3, dtype=torch.float64, requires_grad=True))


def test_a_view_and_its_base_keep_their_own_shapes(check: Any) -> None:
    def program(x: torch.Tensor) -> Any:
        base = x * 2
        view = base[1:]
        view.t_()
        view.add_(1)
        return base, view

    check(program, torch.randn(3, 2, dtype=torch.float64))


def test_a_write_after_a_change_of_shape(check: Any) -> None:
    def program(x: torch.Tensor) -> Any:
        y = x * 2
        y.t_()
        y[0] = 5
        return y, y.sum()

    check(program, torch.randn(3, 2, dtype=torch.float64))
    check(program, torch.randn(3, 2, dtype=torch.float64, requires_grad=True))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x.t_(), x * 2),
        lambda x: (x.mul_(2), x.unsqueeze_(0).add_(1), x.sum()),
        lambda x: (x[0], x.transpose_(0, 1), x[0] + 1),
        lambda x: (x.resize_(3).mul_(2), x.resize_as_(torch.ones(3, 1))),
        lambda x: (x.as_strided_((2, 2), (1, 2)), x + 1),
        lambda x: x.unsqueeze_(1).squeeze_(),
    ],
)
def test_inputs_take_other_forms(function: Any, check: Any) -> None:
    check(function, X)
    check(lambda x, w: (function(x), x * w), X, torch.tensor(2.0, dtype=torch.float64, requires_grad=True))


def test_autograd_hears_of_an_inputs_form(compiled: Any) -> None:
    def program(x: Any) -> Any:
        x.t_()
        return (x * x).sum(0), x

    def gradients(function: Any) -> Any:
        leaf = X.clone().requires_grad_()
        x = leaf * 1
        first, second = function(x)
        assert second is x
        found = torch.autograd.grad(first.sum() + (x * torch.arange(2.0)).sum(), leaf)
        return (*found, x.shape, x.stride(), type(x.grad_fn).__name__)

    expected, actual = gradients(program), gradients(compiled(program))
    torch.testing.assert_close(actual[0], expected[0], rtol=0, atol=0)
    assert actual[1:] == expected[1:]


def _write_and_form(x: Any) -> Any:
    x.mul_(2)
    return x.t_()


def _form_without_grad(x: Any) -> Any:
    with torch.no_grad():
        x.t_()
    return x.sum()


def _view_beside_form(x: Any) -> Any:
    view = x[0]
    x.t_()
    return view


@pytest.mark.parametrize("function", [_write_and_form, _form_without_grad, _view_beside_form])
def test_histories_that_cannot_follow_are_refused(function: Any, compiled: Any) -> None:
    with pytest.raises(UnsupportedProgramError) as refusal:
        compiled(function)(X.clone().requires_grad_() * 1)
    assert refusal.value.code == "AOT112"


def test_more_memory_is_refused(compiled: Any) -> None:
    for function in (lambda x: x.resize_(7), lambda x: x[:, 1:].resize_(4)):
        with pytest.raises(UnsupportedProgramError) as refusal:
            compiled(function)(X.clone())
        assert refusal.value.code == "AOT112"


def test_offsets_count_from_the_start_of_an_inputs_memory(compiled: Any) -> None:
    """A write through such a view is refused where the input begins elsewhere, in this call and in later ones."""

    def program(x: Any) -> Any:
        torch.as_strided(x, (2,), (1,), 1).mul_(3)
        return x * 1

    fast, memory = compiled(program), torch.arange(10.0)
    torch.testing.assert_close(fast(memory[:5].clone()), program(memory[:5].clone()), rtol=0, atol=0)
    one, two = memory.clone(), memory.clone()
    torch.testing.assert_close(fast(one[5:]), program(two[5:]), rtol=0, atol=0)
    assert torch.equal(one, two)
    with pytest.raises(UnsupportedProgramError, match="AOT121"):
        compiled(program)(memory[5:])
