"""The referee: float64 beside eager, through views, writes, backward passes, and operators without float64."""

from __future__ import annotations

import torch

from fxstack.verification.referee import refereed


def test_values_are_those_of_float64() -> None:
    x = torch.randn(20, 20)
    made, referee = refereed(lambda: (x @ x).softmax(-1))
    exact = (x.double() @ x.double()).softmax(-1)
    assert torch.allclose(referee.exact(made), exact, rtol=1e-13, atol=1e-15)
    assert not torch.equal(made.double(), exact)


def test_writes_through_views_reach_the_base() -> None:
    x = torch.rand(6)

    def run() -> torch.Tensor:
        y = x / 3
        y.view(2, 3)[1].mul_(1 / 7).add_(y[0])
        return y

    made, referee = refereed(run)
    exact = x.double() / 3
    exact[3:] = exact[3:] * (1 / 7) + exact[0]
    assert torch.allclose(referee.exact(made), exact, rtol=1e-14, atol=0)


def test_backward_passes_are_watched() -> None:
    x = torch.rand(8, requires_grad=True)
    twin = x.detach().double().requires_grad_()
    made, referee = refereed(lambda: torch.autograd.grad(x.sin().exp().sum(), x)[0])
    (exact,) = torch.autograd.grad(twin.sin().exp().sum(), twin)
    assert torch.allclose(referee.exact(made), exact, rtol=1e-14, atol=0)


def test_narrow_types_keep_their_doubles() -> None:
    x = torch.rand(8)
    made, referee = refereed(lambda: x.to(torch.bfloat16).mul(3).to(torch.float32))
    assert torch.allclose(referee.exact(made), x.double() * 3, rtol=1e-14, atol=0)


def test_random_numbers_are_eagers() -> None:
    torch.manual_seed(3)
    made, referee = refereed(lambda: torch.rand(5) * 2)
    torch.manual_seed(3)
    assert torch.equal(referee.exact(made), torch.rand(5).double() * 2)
    made, referee = refereed(lambda: torch.rand(5, generator=torch.Generator().manual_seed(1)))
    assert torch.equal(referee.exact(made), made.double())


def test_integers_are_not_doubled() -> None:
    made, referee = refereed(lambda: torch.tensor([3.0, 1.0]).argsort())
    assert referee.exact(made) is not None
    assert referee.exact(made).dtype == torch.int64


def test_operators_that_may_draw_and_do_not_run_in_float64() -> None:
    attention = torch.nn.functional.scaled_dot_product_attention
    q = torch.randn(1, 2, 6, 8, requires_grad=True)
    twin = q.detach().double().requires_grad_()
    made, referee = refereed(lambda: torch.autograd.grad(attention(q, q, q).sum(), q)[0])
    (exact,) = torch.autograd.grad(attention(twin, twin, twin).sum(), twin)
    assert torch.allclose(referee.exact(made), exact, rtol=1e-12, atol=1e-13)
    assert not torch.equal(referee.exact(made), made.double())


def _projected(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch._grouped_mm(x, weight, torch.tensor([2, 2, 8], dtype=torch.int32))


def test_products_in_groups_have_a_formula() -> None:
    """torch multiplies groups in float32 alone; forward and backward group rows, and the dimension that is summed."""
    torch.manual_seed(0)
    x = torch.randn(8, 16, requires_grad=True)
    weight = torch.randn(3, 16, 8, requires_grad=True)

    def run() -> torch.Tensor:
        result = _projected(x, weight)
        (result * torch.linspace(0, 1, 64).view(8, 8)).sum().backward()
        return result

    result, referee = refereed(run)
    wide = [t.detach().double().requires_grad_() for t in (x, weight)]
    exact = torch.cat([wide[0][:2] @ wide[1][0], wide[0][2:] @ wide[1][2]])
    (exact * torch.linspace(0, 1, 64).double().view(8, 8)).sum().backward()
    assert not referee.unreferred
    assert x.grad is not None
    assert weight.grad is not None
    torch.testing.assert_close(referee.exact(result), exact.detach(), rtol=1e-14, atol=1e-14)
    torch.testing.assert_close(referee.exact(x.grad), wide[0].grad, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(referee.exact(weight.grad), wide[1].grad, rtol=1e-7, atol=1e-9)
