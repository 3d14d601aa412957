"""Gradients in the layouts that eager gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from aot_autograd import aot_function
from aot_autograd.joint.gradient_layouts import tangent_spec
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec

_REPEATED: dict[str, Callable[[Tensor], Tensor]] = {
    "one number": lambda x: x.sum(),
    "a row": lambda x: x.sum(0),
    "a column": lambda x: x.sum(1, keepdim=True),
    "a mean's": lambda x: x.mean(),
}


@pytest.mark.parametrize("function", _REPEATED.values(), ids=list(_REPEATED))
def test_a_gradient_that_repeats_a_smaller_tensor_is_as_small_as_eagers(
    library: Any, function: Callable[[Tensor], Tensor]
) -> None:
    x = torch.randn(6, 5, requires_grad=True)
    found = []
    for run in (function, aot_function(function, operators=library, forward_compiler=lambda graph: graph)):
        result = run(x)
        (gradient,) = torch.autograd.grad(result, x, torch.full_like(result, 3.0))
        found.append((gradient.stride(), gradient.untyped_storage().nbytes(), gradient.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("function", _REPEATED.values(), ids=list(_REPEATED))
def test_accumulated_it_has_the_layout_of_its_tensor(
    library: Any, function: Callable[[Tensor], Tensor]
) -> None:
    run = aot_function(function, operators=library, forward_compiler=lambda graph: graph)
    for _ in range(2):
        x = torch.randn(6, 5, requires_grad=True)
        seen: list[Tensor] = []
        x.register_hook(seen.append)
        for _ in range(2):
            run(x).sum().backward()
        assert x.grad is not None
        assert x.grad.stride() == (5, 1)
        x.grad.zero_()  # each element is its own
        assert len(seen) == 2


def test_a_transposed_gradient_is_laid_out_as_its_tensor(library: Any) -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        return (x.t() * y).sum()

    x, y = torch.randn(6, 5, requires_grad=True), torch.randn(5, 6)
    (gradient,) = torch.autograd.grad(
        aot_function(function, operators=library, forward_compiler=lambda graph: graph)(x, y), x
    )
    assert gradient.stride() == (5, 1)
    assert torch.equal(gradient, y.t())


_JOINED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "rows": lambda x, y: torch.cat([x, y]),
    "columns": lambda x, y: torch.cat([x, y], 1),
    "stacked": lambda x, y: torch.stack([x, y]),
    "side by side": lambda x, y: torch.stack([x, y], -1),
}


@pytest.mark.parametrize("function", _JOINED.values(), ids=list(_JOINED))
def test_gradients_of_what_is_joined_lie_where_eagers_do(
    library: Any, function: Callable[[Tensor, Tensor], Tensor]
) -> None:
    x, y = (torch.randn(6, 5, requires_grad=True) for _ in range(2))
    found = []
    for run in (function, aot_function(function, operators=library, forward_compiler=lambda graph: graph)):
        result = run(x, y)
        arriving = torch.randn(result.shape, generator=torch.Generator().manual_seed(0))
        gradients = torch.autograd.grad(result, [x, y], arriving)
        memory = arriving.untyped_storage().data_ptr()
        found.append(
            [
                (g.stride(), g.storage_offset(), g.untyped_storage().data_ptr() == memory, g.tolist())
                for g in gradients
            ]
        )
    assert found[0] == found[1]
    assert all(shared for _, _, shared, _ in found[0])


@pytest.mark.parametrize("function", _JOINED.values(), ids=list(_JOINED))
def test_accumulated_gradients_of_what_is_joined_are_their_tensors_own(
    library: Any, function: Callable[[Tensor, Tensor], Tensor]
) -> None:
    run = aot_function(function, operators=library, forward_compiler=lambda graph: graph)
    for made in (function, run):
        x, y = (torch.randn(6, 5, requires_grad=True) for _ in range(2))
        result = made(x, y)
        arriving = torch.ones_like(result)
        result.backward(arriving)
        assert x.grad is not None
        assert y.grad is not None
        assert x.grad.stride() == y.grad.stride() == (5, 1)
        x.grad.zero_()
        assert bool((y.grad == 1).all())


def test_a_gradient_is_expected_in_the_layout_of_its_result_of_any_size() -> None:
    env = ShapeEnv()
    n, c, h = (env.create_symbol(hint) for hint in (4, 3, 8))
    sizes = (n, c, h // 2, h // 2)
    row_major = (c * (h // 2) * (h // 2), (h // 2) * (h // 2), h // 2, 1)
    last = (c * (h // 2) * (h // 2), 1, c * (h // 2), c)
    gaps = (2 * c * (h // 2) * (h // 2), 2, 2 * c * (h // 2), 2 * c)
    for strides, expected in (
        (row_major, row_major),
        (last, last),
        (gaps, row_major),
        ((0, 1, c, c), row_major),
    ):
        spec = TensorSpec(sizes, strides, torch.float32, torch.device("cpu"))
        assert tangent_spec(spec).strides == expected
