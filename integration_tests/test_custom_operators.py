"""Operators that a program defines: one graph for all sizes, by what they say of their results; their kernels run only
where the program runs them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import fxstack

_CALLS: list[str] = []


@torch.library.custom_op("fxstack_tests::scaled", mutates_args=())
def scaled(x: Tensor, y: Tensor, factor: float = 2.0) -> tuple[Tensor, Tensor]:
    _CALLS.append("scaled")
    return x * y * factor, x.sum(0)


@scaled.register_fake
def _(x: Tensor, y: Tensor, factor: float = 2.0) -> tuple[Tensor, Tensor]:
    assert x.shape == y.shape
    return torch.empty_like(x), x.new_empty(x.shape[1:])


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:2])
    ctx.factor = inputs[2]


def _scaled_backward(ctx: Any, product: Tensor, total: Tensor) -> Any:
    x, y = ctx.saved_tensors
    return product * y * ctx.factor + total, product * x * ctx.factor, None


scaled.register_autograd(_scaled_backward, setup_context=_keep)


@torch.library.custom_op("fxstack_tests::noted", mutates_args={"total"})
def noted(x: Tensor, total: Tensor) -> Tensor:
    total.add_(x.sum(0))
    return x + 1


@noted.register_fake
def _(x: Tensor, total: Tensor) -> Tensor:
    return torch.empty_like(x)


@torch.library.custom_op("fxstack_tests::positive", mutates_args=())
def positive(x: Tensor) -> Tensor:
    return x[x > 0].clone()


@positive.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_empty(torch.library.get_ctx().new_dynamic_size())


@torch.library.custom_op("fxstack_tests::total", mutates_args=())
def total(x: Tensor) -> int:
    return int(x.sum())


@torch.library.custom_op("fxstack_tests::silent", mutates_args=())
def silent(x: Tensor) -> Tensor:
    _CALLS.append("silent")
    return x.sin()


@fxstack.compile(fullgraph=True)
def _inner(x: Tensor) -> Tensor:
    return x.sin().cos()


def _shifted(x: Tensor, k: int) -> Tensor:
    return _inner(x)[k:] + k


@pytest.fixture(scope="module")
def operators() -> Iterator[Any]:
    library = torch.library.Library("fxstack_tests_old", "DEF")  # type: ignore[no-untyped-call]
    library.define("update_(Tensor(a!) x, Tensor y) -> Tensor(a!)")  # type: ignore[no-untyped-call]
    library.impl("update_", lambda x, y: x.add_(y), "CPU")  # type: ignore[no-untyped-call]
    library.impl("update_", lambda x, y: x, "Meta")  # type: ignore[no-untyped-call]
    library.define("sine(Tensor x) -> Tensor")  # type: ignore[no-untyped-call]
    library.impl("sine", lambda x: x.sin(), "CPU")  # type: ignore[no-untyped-call]
    library.impl("sine", torch.empty_like, "Meta")  # type: ignore[no-untyped-call]
    library.define("shifted(Tensor x, int k) -> Tensor")  # type: ignore[no-untyped-call]
    library.impl("shifted", _shifted, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
    library.define("parts(Tensor x) -> (Tensor, Tensor[], Tensor)")  # type: ignore[no-untyped-call]
    kernel = lambda x: (x + 1, [x.sum(0), x * 2], x[:1] - 1)
    library.impl("parts", kernel, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
    yield torch.ops.fxstack_tests_old
    library._destroy()  # type: ignore[no-untyped-call]


def _report(fast: Any) -> tuple[int, list[str]]:
    report = fast.__fxstack_capture__.report
    return len(report.replacements), [made.stopped.code for _, made in report.replacements if made.stopped]


def test_results_and_gradients_for_all_sizes() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        product, columns = scaled(x.relu(), y, 3.0)
        return product.sin() + columns

    fast = fxstack.compile(program, backend="aot_eager", dynamic=True, fullgraph=True)
    for n in (3, 5, 8):
        x, y = torch.randn(n, 4, requires_grad=True), torch.randn(n, 4, requires_grad=True)
        _CALLS.clear()
        found = fast(x, y)
        assert _CALLS == ["scaled"]
        expected = program(x, y)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(
            torch.autograd.grad(found.sum(), (x, y)), torch.autograd.grad(expected.sum(), (x, y))
        )
    assert _report(fast) == (1, [])


def test_one_that_writes_and_returns_something_else() -> None:
    """Its result was taken to be what it writes."""

    def program(x: Tensor, sums: Tensor) -> tuple[Tensor, Tensor]:
        return noted(x, sums) * 2, noted(x * 2, sums)

    fast = fxstack.compile(program, backend="aot_eager", dynamic=True, fullgraph=True)
    for n in (3, 5):
        x, sums, others = torch.randn(n, 4), torch.zeros(4), torch.zeros(4)
        torch.testing.assert_close(fast(x, sums), program(x, others))
        torch.testing.assert_close(sums, others)
    assert _report(fast) == (1, [])


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_write_is_counted(operators: Any, backend: str) -> None:
    """Nothing counted it: a gradient was computed with what the operator had written."""

    def saved_before(w: Tensor, x: Tensor) -> Tensor:
        product = w * x
        operators.update_(x, x.sin())
        return product

    def written(x: Tensor) -> Tensor:
        operators.update_(x, x.sin())
        return x + 1

    w, x = torch.randn(3, requires_grad=True), torch.randn(3)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        fxstack.compile(saved_before, backend=backend)(w, x).sum().backward()
    product = w * x
    fxstack.compile(written, backend=backend)(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_one_that_returns_what_it_writes(operators: Any) -> None:
    def program(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        rows = x[1:]
        return operators.update_(rows, y) * 2, x + 1

    fast = fxstack.compile(program, backend="aot_eager", dynamic=True, fullgraph=True)
    for n in (4, 6):
        x, y = torch.randn(n, 3), torch.randn(3)
        other = x.clone()
        torch.testing.assert_close(fast(x, y), program(other, y))
        torch.testing.assert_close(x, other)
    assert _report(fast)[1] == []


def test_sizes_from_data() -> None:
    fast = fxstack.compile(lambda x: positive(x) * 2, backend="aot_eager", dynamic=True, fullgraph=True)
    for n in (4, 6):
        x = torch.randn(n, 3)
        torch.testing.assert_close(fast(x), positive(x) * 2)
    assert _report(fast) == (1, [])


def test_a_number_from_data_breaks_the_graph() -> None:
    """It was the number for a tensor of zeros."""
    fast = fxstack.compile(lambda x: x * total(x), backend="aot_eager")
    x = torch.full((3,), 2.0)
    torch.testing.assert_close(fast(x), x * 6)
    assert _report(fast)[1] == ["CAP206"]


def test_one_that_says_nothing_of_its_result_breaks_the_graph() -> None:
    fast = fxstack.compile(lambda x: silent(x + 1) * 2, backend="aot_eager")
    _CALLS.clear()
    torch.testing.assert_close(fast(torch.ones(3)), torch.full((3,), 2.0).sin() * 2)
    assert _CALLS == ["silent"]
    assert _report(fast)[1] == ["CAP206"]


def test_a_kernel_for_all_devices_says_what_it_returns(operators: Any) -> None:
    """Also one that calls what is compiled itself."""
    fast = fxstack.compile(lambda x: operators.shifted(x * 2, 1) * 3, dynamic=True, fullgraph=True)
    for n in (4, 6):
        x = torch.randn(n, 3)
        torch.testing.assert_close(fast(x), ((x * 2).sin().cos()[1:] + 1) * 3)
    assert _report(fast) == (1, [])
    assert _report(_inner)[1] == []


@pytest.mark.filterwarnings("ignore:.*an autograd kernel was not registered")
def test_one_without_a_formula_has_the_gradient_of_its_kernel(operators: Any) -> None:
    """It had none, without a word: autograd follows what the kernel calls."""
    fast = fxstack.compile(lambda x: operators.sine(x * 2) * 3, backend="aot_eager")
    x = torch.randn(4, requires_grad=True)
    torch.testing.assert_close(torch.autograd.grad(fast(x).sum(), x), ((x * 2).cos() * 6,))
    assert _report(fast)[1] == ["CAP206"]
    with torch.no_grad():
        torch.testing.assert_close(fast(x), (x * 2).sin() * 3)
    assert _report(fast)[1] == ["CAP206"]


@pytest.mark.parametrize("backend", ["aot_eager", None])
def test_lists_beside_other_results(operators: Any, backend: str | None) -> None:
    """AOT109, and IND104 in the code generator."""

    def program(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        _, listed, last = operators.parts(x)
        return listed[1].sin() * w + listed[0], last * 2

    options = {} if backend is None else {"backend": backend}
    fast = fxstack.compile(program, dynamic=True, fullgraph=True, **options)
    for n in (4, 6):
        x, ways = torch.randn(n, 3), [torch.ones(3, requires_grad=True) for _ in range(2)]
        found, expected = fast(x, ways[0]), program(x, ways[1])
        torch.testing.assert_close(found, expected)
        for result, _ in (found, expected):
            result.sum().backward()
        torch.testing.assert_close(ways[0].grad, ways[1].grad)
    assert _report(fast) == (1, [])
