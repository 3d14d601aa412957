"""What is kept where moving bytes is what costs time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from aot_autograd import aot_function
from aot_autograd.partition.least_traffic import least_traffic
from aot_autograd.partition.save_everything import Partitioner, save_everything
from fx_interface.signature import OutputKind, signature_of


def kept(program: Any, library: Any, *inputs: Tensor, partition: Partitioner = least_traffic) -> list[str]:
    """The operators whose results are kept, after the gradients were compared with eager's."""
    operators: list[str] = []

    def note(graph: Any) -> Any:
        signature = signature_of(graph)
        assert signature is not None
        results = graph.graph.output_node().args[0]
        for result, declared in zip(results, signature.outputs, strict=True):
            if declared.kind is OutputKind.SAVED:
                operators.append(result.target.__name__.split(".")[0])
        return graph

    run = aot_function(
        program,
        operators=library,
        forward_compiler=note,
        backward_compiler=lambda graph: graph,
        partition=partition,
    )
    expected = torch.autograd.grad(program(*inputs).sum(), inputs)
    torch.testing.assert_close(torch.autograd.grad(run(*inputs).sum(), inputs), expected)
    return sorted(operators)


def grad(*sizes: int) -> Tensor:
    return torch.randn(sizes, dtype=torch.float64).requires_grad_()


def test_what_a_product_of_the_backward_reads_is_kept(library: Any) -> None:
    """The activation is in memory in both halves; what is inside of it is computed again from the first product."""

    def program(x: Tensor, v: Tensor, w: Tensor) -> Tensor:
        h = x @ v
        return (h * torch.tanh(h * 0.8 + h * h)) @ w

    inputs = grad(4, 4), grad(4, 4), grad(4, 4)
    assert kept(program, library, *inputs) == ["mm", "mul"]
    assert "tanh" in kept(program, library, *inputs, partition=save_everything)


def test_what_is_read_behind_a_product_is_kept(library: Any) -> None:
    """A residual stream is stored for the sum behind the next product: one read of it, and of nothing it is made of;
    the last sum is stored by nobody, so that the product in it is kept. The first, which is made of an input, would be
    computed in two places."""

    def program(x: Tensor, w: Tensor) -> Tensor:
        first = x * 3 + x.exp()
        second = first + first.sin() @ w
        return (second + second.sin() @ w).cos()

    assert kept(program, library, grad(4, 4), grad(4, 4)) == ["add", "add", "mm", "sin", "sin"]


def test_what_nothing_else_stores_is_computed_again(library: Any) -> None:
    """Keeping a value of one kernel costs a write and a read, of its operand a read."""

    def program(x: Tensor, w: Tensor) -> Tensor:
        y = (x @ w).exp() + 1
        return (y * y.sin()).cos()

    assert kept(program, library, grad(4, 4), grad(4, 4)) == ["mm"]


def test_through_views_and_normalization(library: Any) -> None:
    def program(x: Tensor, w: Tensor) -> Tensor:
        y = nn.functional.layer_norm(x * 2, (4,)).transpose(0, 1)
        return (y @ w).reshape(2, 8).relu()

    assert kept(program, library, grad(4, 4), grad(4, 4)) == ["getitem", "getitem", "getitem", "mm"]


def test_random_numbers_are_drawn_once(library: Any) -> None:
    def program(x: Tensor) -> Tensor:
        return (x * torch.ones_like(x).bernoulli_(1.0)).cos()

    assert "bernoulli" in kept(program, library, grad(100))


def test_a_residual_stream_is_not_computed_from_its_beginning(library: Any) -> None:
    """A kernel of the backward would compute all of it, and store each value for the kernels behind it."""

    def program(x: Tensor, w: Tensor) -> Tensor:
        for _ in range(4):
            x = x + x.sin() @ w
            x = x * torch.sigmoid(x) + torch.tanh(x)
        return x.cos()

    assert kept(program, library, grad(64, 64), grad(64, 64)) == ["add"] * 3 + ["mm"] * 4 + ["sin"] * 4


def gelu_in_parts(x: Tensor, v: Tensor, w: Tensor) -> Tensor:
    h = x @ v
    return (h * (torch.tanh(0.8 * (h + 0.04 * torch.pow(h, 3))) + 1)) @ w


def test_arithmetic_counts(library: Any) -> None:
    """Four operators that round their results to 16 bits, and a function, take longer than a write and a read of what
    they compute; in float64 nothing is rounded, and there are four times as many bytes."""
    inputs = grad(64, 64), grad(64, 64), grad(64, 64)
    assert kept(gelu_in_parts, library, *inputs) == ["mm", "mul"]
    narrow = [x.detach().bfloat16().requires_grad_() for x in inputs]
    assert kept(gelu_in_parts, library, *narrow) == ["mm", "mul", "tanh"]


def test_what_is_made_of_inputs_for_one_reader_is_computed_again(library: Any) -> None:
    """``1 + weight`` of a normalization stands behind no product, though what reads it does."""

    def program(x: Tensor, first: Tensor, second: Tensor, w: Tensor) -> Tensor:
        for scale in (first, second):
            x = (x @ w).sin() * (1 + scale)
        return x.sin()

    assert "add" not in kept(program, library, grad(64, 64), grad(64), grad(64), grad(64, 64))
