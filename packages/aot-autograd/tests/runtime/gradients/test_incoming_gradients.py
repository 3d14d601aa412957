"""Gradients that are no plain tensors arrive at compiled backwards as at eager's."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from aot_autograd import aot_function
from aot_autograd.runtime.gradients.incoming_gradients import are_plain, dense, resolved


class Own(torch.Tensor):
    """A class that dispatches in Python."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


COMPLEX = torch.tensor([1 + 1j, 2 - 1j, 3 + 2j])
SPARSE = torch.tensor([0.0, 2.0, 0.0]).to_sparse()


def reading_memory(graph: Any) -> Any:
    """A compiler whose graphs look at memory alone, as generated code does."""

    def run(*inputs: Any) -> Any:
        return graph(*[torch.from_dlpack(x.detach()) if isinstance(x, torch.Tensor) else x for x in inputs])

    return run


def test_what_is_plain() -> None:
    assert are_plain(
        [None, torch.ones(2), torch.ones(2, requires_grad=True) * 2, torch.ones(1).expand(3), torch.ones(0)]
    )
    for gradient in (
        COMPLEX.conj(),
        COMPLEX.conj().imag,
        torch._efficientzerotensor(3),
        SPARSE,
        Own(torch.ones(2)),
    ):
        assert not are_plain([gradient])


def test_marks_are_resolved() -> None:
    gradients = [COMPLEX.conj(), COMPLEX.conj().imag, None]
    made = resolved(gradients)
    assert are_plain(made)
    for one, other in zip(gradients[:2], made[:2], strict=True):
        torch.testing.assert_close(other, one.clone(), rtol=0, atol=0)  # type: ignore[union-attr]
    for kind in (SPARSE, Own(torch.ones(2)), torch._efficientzerotensor(3)):
        assert not are_plain(resolved([kind]))


def test_zeros_without_memory_times_infinity_are_zeros(compiled: Any) -> None:
    """The second derivative of ``abs`` is such zeros."""

    def program(x: torch.Tensor) -> Any:
        product = x.detach() * x
        return product, product.abs()

    found = []
    for run in (program, compiled(program)):
        x = torch.tensor([-3.0, 0.0, float("inf")], requires_grad=True)
        (first,) = torch.autograd.grad(run(x)[1].sum(), x, create_graph=True)
        found.append([first, *torch.autograd.grad(first.sum(), x)])
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0, equal_nan=True)


def test_what_cannot_be_made_dense_raises() -> None:
    torch.testing.assert_close(dense([SPARSE, None])[0], SPARSE.to_dense(), rtol=0, atol=0)
    with pytest.raises(RuntimeError, match="AOT304"):
        dense([Own(torch.ones(2))])


@pytest.mark.parametrize(
    "gradient",
    [COMPLEX.conj().imag, torch._efficientzerotensor(3), SPARSE, torch.ones(1).expand(3)],
    ids=["negated", "zeros", "sparse", "expanded"],
)
def test_gradients_are_eagers(library: Any, gradient: torch.Tensor) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    run = aot_function(function, operators=library, forward_compiler=reading_memory)
    found = []
    for call in (function, run):
        x = torch.arange(3.0, requires_grad=True)
        found.append(torch.autograd.grad(call(x), x, gradient)[0])
    assert found[0].layout is found[1].layout
    torch.testing.assert_close(found[0].to_dense(), found[1].to_dense(), rtol=0, atol=0)


def test_conjugated(library: Any) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x * (1 + 2j)

    run = aot_function(function, operators=library, forward_compiler=reading_memory)
    found = []
    for call in (function, run):
        x = COMPLEX.clone().requires_grad_()
        found.append(torch.autograd.grad(call(x), x, COMPLEX.conj())[0])
    torch.testing.assert_close(*found, rtol=0, atol=0)


@pytest.mark.parametrize("again", [False, True])
def test_a_batch_of_gradients(library: Any, again: bool) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (x * x).sin()

    run = aot_function(function, operators=library, forward_compiler=reading_memory)
    found = []
    for call in (function, run):
        x = torch.arange(3.0, requires_grad=True)
        (rows,) = torch.autograd.grad(call(x), x, torch.eye(3), is_grads_batched=True, create_graph=again)
        assert rows.requires_grad is again
        found.append(rows)
    torch.testing.assert_close(*found, rtol=0, atol=0)
