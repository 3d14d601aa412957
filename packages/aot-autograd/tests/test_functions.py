"""Standalone use of functions and modules."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from aot_autograd import aot_module


def test_arguments_and_results_may_be_nested(compiled: Any) -> None:
    run = compiled(lambda pair, scale: {"sum": pair[0] + pair[1], "more": [pair[0] * scale["by"]]})
    result = run((torch.ones(2), torch.ones(2)), scale={"by": 3})
    assert result["sum"].tolist() == [2.0, 2.0]
    assert result["more"][0].tolist() == [3.0, 3.0]


def test_each_kind_of_call_is_compiled_once(compiled: Any) -> None:
    traced: list[Any] = []
    run = compiled(lambda x, k: (traced.append(k), x * k)[1])
    x = torch.ones(2)
    for arguments in [(x, 2), (x, 2), (x, 3), (x, 2.0), (torch.ones(3), 2), (x.double(), 2)]:
        assert torch.equal(run(*arguments), arguments[0] * arguments[1])
    assert len(traced) == 5


def test_a_module_is_left_as_it_was(library: Any, interpreter: Any) -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    before = dict(model.named_parameters())
    run = aot_module(model, operators=library, forward_compiler=interpreter)
    run(torch.randn(4, 3)).sum().backward()
    assert all(p is before[name] for name, p in model.named_parameters())
    assert all(p.grad is not None for p in model.parameters())
    assert model[1].num_batches_tracked.item() == 1
    model.eval()
    torch.testing.assert_close(run(torch.ones(2, 3)), model(torch.ones(2, 3)), rtol=0, atol=0)


def test_numbers_that_compare_equal_are_told_apart(compiled: Any) -> None:
    run = compiled(lambda x, number: x * number)
    x = torch.ones(2)
    assert torch.signbit(run(x, -0.0)).all()
    assert not torch.signbit(run(x, 0.0)).any()
    assert run(x, 2).equal(run(x, 2.0))


def test_slices_are_constants(compiled: Any) -> None:
    run = compiled(lambda x, index: x[index])
    x = torch.arange(5.0)
    assert run(x, slice(1, None)).equal(x[1:])
    assert run(x, slice(2, None)).equal(x[2:])


def test_one_tensor_passed_twice(compiled: Any) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, bool]:
        x.t_()
        y.unsqueeze_(0)
        y.add_(1)
        return x * 2, x is y

    run = compiled(program)
    x, one, two = torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(2, 3)
    result, same = run(x, x)
    assert same
    assert result.shape == x.shape == (1, 3, 2)
    assert result.eq(2).all()
    result, same = run(one, two)
    assert not same
    assert one.shape == (3, 2)
    assert two.shape == (1, 2, 3)


def test_gradients_are_turned_on_inside(compiled: Any) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.enable_grad():
            return x * 2, (x * 3).detach()

    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        one, other = compiled(program)(x)
    assert one.requires_grad
    assert not other.requires_grad
    one.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]


def test_views_of_inputs_where_gradients_are_turned_on_inside(compiled: Any) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            return x.t()

    with torch.no_grad():
        view = compiled(program)(torch.ones(2, 3, requires_grad=True))
    assert view.requires_grad


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("writes", [1, 3])
def test_versions_count_the_writes(compiled: Any, trained: bool, writes: int) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        made = x * 1
        for _ in range(writes):
            x.add_(1)
            made.mul_(2)
        return made

    for function in (program, compiled(program)):
        x = torch.ones(2, requires_grad=trained) * 1
        result = function(x)
        assert (x._version, result._version) == (writes, writes)
        if trained:
            result.sum().backward()
