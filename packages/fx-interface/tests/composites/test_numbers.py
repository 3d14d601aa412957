"""Formulas in which a number stays a tensor give what torch gives for the number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from fx_interface.composites.numbers import NUMBERED
from fx_interface.serialization.target_names import target_name, target_of

X = torch.tensor(
    [[-40.0, -3.0, -0.0, 0.0], [0.3, 2.0, 60.0, 300.0], [1e-20, -1e-20, 5.0, -0.7], [1, 2, 3, 4]]
)
CALLS: list[tuple[Any, Callable[[Any, Tensor, Any], Tensor]]] = [
    (functional.elu, lambda f, x, a: f(x, a)),
    (functional.celu, lambda f, x, a: f(x, alpha=a)),
    (functional.softplus, lambda f, x, a: f(x, a)),
    (functional.softplus, lambda f, x, a: f(x, threshold=a)),
    (functional.softshrink, lambda f, x, a: f(x, a)),
    (torch.addmm, lambda f, x, a: f(x, x / 9, x.t() / 9, beta=a, alpha=a)),
    (torch.addmm, lambda f, x, a: f(x.t(), x.t(), x / 9, beta=0, alpha=a)),
    (torch.addmv, lambda f, x, a: f(x[0], x, x[2], beta=a)),
    (torch.baddbmm, lambda f, x, a: f(x, x[None], x[None].mT / 9, alpha=a)),
    (torch.addbmm, lambda f, x, a: f(x[0], x[None], x[None], beta=2, alpha=a)),
    (torch.addr, lambda f, x, a: f(x, x[0], x[1], beta=a)),
    (torch.pow, lambda f, x, a: f(x.abs(), a)),
    (torch.index_add, lambda f, x, a: f(x, 0, torch.tensor([1, 1]), x[:2], alpha=a)),
    (torch.scatter, lambda f, x, a: f(x, 1, torch.tensor([[0, 1], [2, 2]]), a)),
    (torch.norm, lambda f, x, a: f(x, a)),
    (torch.norm, lambda f, x, a: f(torch.cat([x, 0 * x]), p=a, dim=1, keepdim=True)),
    (torch.linalg.vector_norm, lambda f, x, a: f(x, a, (0, 1), dtype=torch.float64)),
    (functional.normalize, lambda f, x, a: f(torch.cat([x, 0 * x]), a, -1)),
    (functional.normalize, lambda f, x, a: f(x.t(), 2.0, 0, a)),
    (torch.dist, lambda f, x, a: f(x, x[0] / 2, a)),
    (torch.renorm, lambda f, x, a: f(x, a, 0, 4.0)),
    (torch.renorm, lambda f, x, a: f(x, 3, -1, 10 * a)),
]


class Tracing(TorchDispatchMode):
    """Sees operators, as a tracer does, and lets no number be read."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert func is not torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("number", [0.5, 1.0, 3.25])
@pytest.mark.parametrize(("function", "call"), CALLS)
def test_a_number_in_a_tensor(
    function: Any, call: Callable[[Any, Tensor, Any], Tensor], number: float
) -> None:
    x = X.double().requires_grad_()
    numbered = NUMBERED[function.__name__]
    expected = call(function, x, number)
    (gradient,) = torch.autograd.grad(expected.sum(), x, retain_graph=True)
    given = torch.tensor(number, dtype=torch.float64)
    with Tracing():
        made = call(numbered, x, given)
    torch.testing.assert_close(made, expected, rtol=1e-13, atol=1e-16)
    assert made.stride() == expected.stride()
    found = torch.autograd.grad(made.sum(), x)[0]
    torch.testing.assert_close(found, gradient, rtol=1e-13, atol=1e-16, equal_nan=True)
    for one in (number, given):
        read = call(numbered, x, one)
        assert torch.equal(read, expected)
        found = torch.autograd.grad(read.sum(), x)[0]
        assert torch.equal(found.nan_to_num(7), gradient.nan_to_num(7))


def test_an_input_that_is_multiplied_by_0_is_not_read() -> None:
    given = torch.full((4, 4), float("nan"))
    with Tracing():
        made = NUMBERED["addmm"](given, X, X, beta=torch.tensor(0.0, dtype=torch.float64), alpha=2)
    torch.testing.assert_close(made, torch.addmm(given, X, X, beta=0, alpha=2))


def test_they_have_stable_names() -> None:
    for function in NUMBERED.values():
        assert target_of(target_name(function)) is function


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32, torch.bool])
def test_powers_of_other_dtypes(dtype: torch.dtype) -> None:
    x = torch.tensor([0.0, 1, 2, 5]).to(dtype)
    for number in (0.5, 2.0, -1.5, 3.25):
        expected, given = torch.pow(x, number), torch.tensor(number, dtype=torch.float64)
        with Tracing():
            made = NUMBERED["pow"](x, given)
        torch.testing.assert_close(made, expected)
        assert torch.equal(NUMBERED["pow"](x, given), expected)


def test_counts_between_limits() -> None:
    x = torch.tensor([[-3.0, -1.0, 0.0, 0.5], [1.0, float("nan"), float("inf"), 0.25]])
    for low, high in ((-1.0, 1.0), (-0.1, 0.3), (-4.0, -2.0), (0.5, 0.75)):
        for one, other in ((low, torch.tensor(high).double()), (torch.tensor(low).double(), high)):
            with Tracing():
                made = NUMBERED["histc"](x, 4, one, max=other)
            assert torch.equal(made, torch.histc(x, 4, low, high))
            assert torch.equal(NUMBERED["histc"](x, 4, one, other), made)
