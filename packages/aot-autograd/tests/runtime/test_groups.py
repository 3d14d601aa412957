"""Results that need nothing of each other may be differentiated in backwards of their own, as in eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from aot_autograd import aot_function

TOLD_APART = pytest.mark.skipif(
    not hasattr(torch._C._autograd.SavedTensor, "unpack"),
    reason="torch before 2.13 gives out what a function has saved all at once, or refuses all of it",
)


def adversarial(g: torch.Tensor, d: torch.Tensor, z: torch.Tensor) -> Any:
    fake = (z @ g).tanh()
    return F.softplus(fake.detach() @ d).mean(), fake


def leaves() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(3, 4, requires_grad=True), torch.randn(4, 1, requires_grad=True), torch.randn(2, 3)]


@pytest.fixture
def compiled(library: Any, interpreter: Any) -> Callable[..., Any]:
    def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
        return aot_function(function, operators=library, forward_compiler=interpreter)

    return compiled


def test_independent_results_have_backwards_of_their_own(compiled: Any) -> None:
    found = []
    for function in (adversarial, compiled(adversarial)):
        g, d, z = leaves()
        loss, fake = function(g, d, z)
        loss.backward()
        assert g.grad is None
        first = d.grad.clone()
        with torch.no_grad():
            d.sub_(0.1 * d.grad)  # as an optimizer does; of no concern to what is left
        fake.sum().backward()
        found.append((first, d.grad, g.grad))
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(two, one, rtol=0, atol=0)


def test_the_same_backward_twice_is_refused(compiled: Any) -> None:
    g, d, z = leaves()
    loss, fake = compiled(adversarial)(g, d, z)
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    fake.sum().backward(retain_graph=True)
    fake.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        fake.sum().backward()


def test_what_is_left_may_not_be_written_to(compiled: Any) -> None:
    def function(g: torch.Tensor, d: torch.Tensor, z: torch.Tensor) -> Any:
        return (z * 2).sum(1) @ d[:2, 0], (g * g).sum()

    for run in (function, compiled(function)):
        g, d, z = leaves()
        one, two = run(g, d, z)
        one.backward()
        with torch.no_grad():
            g.mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            two.backward()


def test_results_of_one_trunk_are_one_group(compiled: Any) -> None:
    def function(g: torch.Tensor, d: torch.Tensor, z: torch.Tensor) -> Any:
        hidden = (z @ g).tanh()
        return hidden.sum(), (hidden @ d).mean()

    for run in (function, compiled(function)):
        one, two = run(*leaves())
        one.backward()
        with pytest.raises(RuntimeError, match="second time"):
            two.backward()


@TOLD_APART
def test_a_value_that_was_overwritten_and_is_not_needed(compiled: Any) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return x + x, (x + x) * x.detach(), x.sigmoid()

    def gradients(function: Any, overwrite_result: bool) -> list[Any]:
        x = torch.tensor([0.5, 2.0], requires_grad=True)
        results = function(x)
        with torch.no_grad():
            (results[2] if overwrite_result else x).mul_(2)
        found: list[Any] = []
        for result in results:
            try:
                found.append(torch.autograd.grad(result.sum(), x, retain_graph=True)[0].tolist())
            except RuntimeError as error:
                found.append(str(error)[:90])
        return found

    for overwrite_result, refused in ((True, 2), (False, 1)):
        found = gradients(compiled(program), overwrite_result)
        assert found == gradients(program, overwrite_result)
        assert "modified by an inplace" in found[refused]


@TOLD_APART
def test_a_result_that_another_one_is_computed_from_with_what_was_overwritten(compiled: Any) -> None:
    def program(g: torch.Tensor, d: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = (z @ g).tanh()
        return hidden, (hidden @ d).square().sum()

    found = []
    for function in (program, compiled(program)):
        g, d, z = leaves()
        hidden, loss = function(g, d, z)
        loss.backward(retain_graph=True)
        with torch.no_grad():
            d.sub_(0.1 * d.grad)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward(retain_graph=True)
        hidden.sum().backward()
        found.append((d.grad, g.grad))
    for one, two in zip(*found, strict=True):
        torch.testing.assert_close(two, one, rtol=0, atol=0)


@TOLD_APART
def test_zeros_times_what_was_overwritten_are_zeros(compiled: Any) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = x.sin()
        return hidden, hidden * y

    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    hidden, product = compiled(program)(x, y)
    y.fill_(torch.inf)
    hidden.sum().backward(retain_graph=True)
    assert torch.equal(x.grad, x.detach().cos())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


@TOLD_APART
def test_a_gradient_that_is_nan_in_eager_beside_what_was_overwritten(compiled: Any) -> None:
    """The program is run again, without what was overwritten, to tell one from zeros times NaN."""

    def quotients(x: torch.Tensor) -> Any:
        copied = x * 1
        return x / copied, copied.clone() / x.detach()

    found = []
    for function in (quotients, compiled(quotients)):
        x = torch.tensor([0.0, 2.0], requires_grad=True)
        one, two = function(x)
        with torch.no_grad():
            one.zero_()
        two.sum().backward()
        found.append(x.grad)
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0, equal_nan=True)


@TOLD_APART
def test_a_value_that_was_overwritten_is_not_what_the_program_is_run_again_with(compiled: Any) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.exp() * 2, x * y

    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    first, _ = compiled(program)(x, y)
    y.mul_(3)
    (slope,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    assert torch.equal(slope, 2 * x.exp())
    with pytest.raises(RuntimeError, match="AOT301"):
        slope.sum().backward()


def _outcomes(function: Any, order: str) -> list[Any]:
    """What backwards of the results give, one for each digit; of all for ``a``."""
    torch.manual_seed(0)
    x = torch.randn(3, 4, requires_grad=True)
    results = function(x)
    found: list[Any] = []
    for which in order:
        chosen = list(results) if which == "a" else [results[int(which)]]
        try:
            found.append(torch.autograd.grad(sum(r.sum() for r in chosen), x)[0].tolist())
        except RuntimeError as error:
            found.append("second time" in str(error))
    return found


class _Negative(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return -x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return -gradient


def _centred(x: torch.Tensor) -> Any:
    return (x - x.mean(0),)


def _centred_beside(x: torch.Tensor) -> Any:
    return x - x.mean(0), x.exp()


def _centred_before(x: torch.Tensor) -> Any:
    y = x - x.mean(0)
    return y, y.exp(), x.sin()


def _by_function(x: torch.Tensor) -> Any:
    return _Negative.apply(x), x.relu()


def _sharing_a_number(x: torch.Tensor) -> Any:
    y = x * 2  # whose node saves the 2
    return y.exp(), y.cos(), x.sin()


@pytest.mark.parametrize(
    ("function", "order"),
    [
        (_centred, "00"),
        (_centred_beside, "00011"),
        (_centred_beside, "00aa"),
        (_centred_before, "0010211"),
        (_centred_before, "0020aa"),
        (_centred_before, "100"),
        (_by_function, "0001"),
        (_by_function, "10"),
        (_sharing_a_number, "01"),
        (_sharing_a_number, "1021"),
        (_sharing_a_number, "20a1"),
    ],
)
def test_a_backward_that_lets_go_of_nothing_comes_again(compiled: Any, function: Any, order: str) -> None:
    assert _outcomes(compiled(function), order) == _outcomes(function, order)
