"""The compiled function behaves in autograd as eager's operators do."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from aot_autograd import aot_function


def D(*sizes: int, grad: bool = True) -> torch.Tensor:
    return torch.randn(sizes, dtype=torch.float64).requires_grad_(grad)


def test_backward_twice_with_a_retained_graph(compiled: Any) -> None:
    x = D(3)
    y = compiled(lambda x: x.exp() * x.sin())(x).sum()
    (first,) = torch.autograd.grad(y, x, retain_graph=True)
    (second,) = torch.autograd.grad(y, x)
    assert torch.equal(first, second)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(y, x)


def test_gradients_accumulate(compiled: Any) -> None:
    w = D(3)
    run = compiled(lambda w: (w * 2).sum())
    run(w).backward()
    run(w).backward()
    torch.testing.assert_close(w.grad, torch.full((3,), 4.0, dtype=torch.float64), rtol=0, atol=0)


def test_an_unused_result_costs_no_gradient(compiled: Any) -> None:
    x = D(3)
    used, unused = compiled(lambda x: (x.exp(), x.sin()))(x)
    (gradient,) = torch.autograd.grad(used.sum(), x)
    torch.testing.assert_close(gradient, x.exp(), rtol=0, atol=0)


def test_a_view_that_is_written_to_stays_a_view(compiled: Any) -> None:
    def function(part: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        part.mul_(w)
        return part.sin(), part.cos()

    w, found = D(3), []
    for run in (function, compiled(function)):
        whole = w.detach().clone().requires_grad_() * 2
        one, other = run(whole[:2], w[:2])
        (gradient,) = torch.autograd.grad((one + other).sum() + whole.sum(), w)
        found.append((whole.detach(), gradient))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_what_only_an_unused_result_depends_on_gets_no_gradient(compiled: Any) -> None:
    x, w, v = D(3), D(3), D(3)
    used, _ = compiled(lambda x, w, v: (x * w, x * v))(x, w, v)
    used.sum().backward()
    assert v.grad is None
    torch.testing.assert_close(w.grad, x.detach(), rtol=0, atol=0)
    torch.testing.assert_close(x.grad, w.detach(), rtol=0, atol=0)


@pytest.mark.parametrize(
    "change", [lambda x: x.detach().t().contiguous().t(), lambda x: x.sum().expand(3, 4)]
)
def test_gradients_arrive_in_any_layout(change: Any, compiled: Any) -> None:
    x, weight = D(3, 4), change(D(3, 4)).detach()
    result = compiled(lambda x: x.exp())(x)
    (actual,) = torch.autograd.grad(result, x, weight)
    torch.testing.assert_close(actual, x.exp() * weight, rtol=0, atol=0)


def test_writing_to_a_saved_input_is_noticed(compiled: Any) -> None:
    x = D(3)
    y = (x * 1).detach()
    result = compiled(lambda x, y: x * y)(x, y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


def test_writing_to_a_saved_result_is_noticed(compiled: Any) -> None:
    result = compiled(lambda x: x.exp())(D(3))
    with torch.no_grad():
        result.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.exp().clone(),
        lambda x: (x * 2).t(),
        lambda x: (x * 2)[0],
        lambda x: (x * 2).detach(),
        lambda x: torch.empty_like(x).copy_(x),
        lambda x: (x * 2).view(12),
    ],
)
def test_results_may_be_written_to_as_in_eager(function: Any, compiled: Any) -> None:
    outcomes = []
    x = D(3, 4)
    for call in (function, compiled(function)):
        result = call(x)
        result.mul_(3)
        outcomes.append((result, torch.autograd.grad(result.sum(), x) if result.requires_grad else ()))
    torch.testing.assert_close(*outcomes, rtol=0, atol=0)
    assert outcomes[0][0].requires_grad == outcomes[1][0].requires_grad


def test_a_view_result_is_a_view_of_the_input(compiled: Any) -> None:
    x = D(3, 4)
    view, value = compiled(lambda x: (x.t(), x.exp()))(x)
    assert view._base is x
    (gradient,) = torch.autograd.grad(view.sum() + value.sum(), x)
    torch.testing.assert_close(gradient, 1 + x.exp(), rtol=0, atol=0)


def test_a_mutated_input_gets_a_history(compiled: Any) -> None:
    outcomes = []
    w = D(3)
    function = lambda buffer, w: (buffer.mul_(w), buffer.sum())[1]
    for call in (function, compiled(function)):
        buffer = torch.ones(3, dtype=torch.float64)
        total = call(buffer, w)
        assert buffer.requires_grad
        outcomes.append(torch.autograd.grad(total + buffer.exp().sum(), w))
    torch.testing.assert_close(*outcomes, rtol=0, atol=0)


def test_a_mutated_input_that_is_no_leaf(compiled: Any) -> None:
    outcomes = []
    w = D(3)
    function = lambda x, w: x.mul_(w).sum()
    for call in (function, compiled(function)):
        x = w * 2
        total = call(x, w)
        outcomes.append((total, x, torch.autograd.grad(total + x.exp().sum(), w)))
    torch.testing.assert_close(*outcomes, rtol=0, atol=0)


def test_hooks_run(compiled: Any) -> None:
    x, seen = D(3), []
    x.register_hook(lambda g: seen.append(g) or g * 2)
    compiled(lambda x: x.exp().sum())(x).backward()
    torch.testing.assert_close(seen[0] * 2, x.grad, rtol=0, atol=0)


def test_saved_tensors_are_freed(compiled: Any) -> None:
    x = D(3)
    run = compiled(lambda x: x.exp() * x.exp().sin())
    saved: list[Any] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        saved.append(weakref.ref(tensor.untyped_storage()))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        result = run(x)
    assert saved
    result.sum().backward()
    del result
    gc.collect()
    alive = [r() for r in saved if r() is not None and r().data_ptr() != x.untyped_storage().data_ptr()]
    assert not alive


def test_without_gradients_nothing_is_kept(compiled: Any) -> None:
    run = compiled(lambda x: x.exp())
    for context in (torch.no_grad, torch.inference_mode):
        with context():
            assert not run(D(3)).requires_grad


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return gradient * 3 * x


def test_custom_functions_keep_their_own_gradient(check: Any) -> None:
    check(lambda x: Squared.apply(x.sin()).exp(), D(3))


def test_checkpointed_parts(check: Any) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.utils.checkpoint.checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False).tanh()

    check(function, D(3))


def test_autocast_inside_the_program(check: Any) -> None:
    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            y = x @ w
        return y.float().sum()

    check(function, torch.randn(3, 4).requires_grad_(), torch.randn(4, 5).requires_grad_())


def test_autocast_around_the_program(check: Any, compiled: Any) -> None:
    x, w = torch.randn(3, 4).requires_grad_(), torch.randn(4, 5).requires_grad_()
    function = lambda x, w: (x @ w).exp()
    with torch.autocast("cpu", torch.bfloat16):
        one, two = function(x, w), compiled(function)(x, w)
    assert one.dtype is two.dtype
    torch.testing.assert_close(two, one, rtol=0, atol=0)
    gradients = [torch.autograd.grad(r.float().sum(), [x, w]) for r in (one, two)]
    torch.testing.assert_close(*gradients, rtol=0, atol=0)


def test_autocast_does_not_convert_again_what_it_let_alone(compiled: Any) -> None:
    """Torch's attention computes in float32 below autocast; its backward met operands of two dtypes."""
    parts = [torch.randn(2, 2, 4, 4).requires_grad_() for _ in range(3)]
    function = lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.3)
    outcomes = []
    for one in (function, compiled(function)):
        torch.manual_seed(0)
        with torch.autocast("cpu", torch.bfloat16):
            found = one(*parts)
        outcomes.append((found, *torch.autograd.grad(found.float().square().sum(), parts)))
    torch.testing.assert_close(*outcomes, rtol=0, atol=0)


def test_random_state_is_untouched_by_tracing_and_advanced_as_in_eager(compiled: Any) -> None:
    function = lambda x: torch.nn.functional.dropout(x, 0.5) + torch.rand_like(x)
    x = D(5)
    torch.manual_seed(3)
    expected = function(x)
    state = torch.get_rng_state()
    torch.manual_seed(3)
    assert torch.equal(compiled(function)(x), expected)
    assert torch.equal(torch.get_rng_state(), state)


def test_numbers_that_a_backward_needs_a_copy_of_are_drawn_in_order(compiled: Any) -> None:
    """The second is copied for the backward, since the caller may overwrite it: it was drawn before the first."""

    def function(x: torch.Tensor) -> Any:
        first, second = torch.rand(5, dtype=x.dtype), torch.rand(5, dtype=x.dtype)
        return x * second.clone() + first, second

    outcomes = []
    for one in (function, compiled(function)):
        x = torch.ones(5, dtype=torch.float64, requires_grad=True)
        torch.manual_seed(3)
        found, second = one(x)
        given = second.clone()
        second.zero_()
        outcomes.append((found, given, *torch.autograd.grad(found.sum(), x)))
    for expected, actual in zip(*outcomes, strict=True):
        assert torch.equal(actual, expected)


class Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.ops: list[Any] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.ops.append(func)
        return func(*args, **(kwargs or {}))


def test_inputs_are_not_changed_by_compiling(compiled: Any) -> None:
    x = torch.ones(3)
    run = compiled(lambda x: x.add_(1))
    run(x)
    assert x.tolist() == [2.0, 2.0, 2.0]


def test_inputs_that_share_memory(compiled: Any) -> None:
    base = torch.arange(4.0)
    assert compiled(lambda a, b: a * b)(base[:3], base[1:]).tolist() == [0.0, 2.0, 6.0]
    run = compiled(lambda a, b: (a.mul_(3), b.sum())[1])
    run(torch.ones(3), torch.ones(3))
    one, two = torch.arange(4.0), torch.arange(4.0)
    assert torch.equal(run(one[:3], one[1:]), (two[:3].mul_(3), two[1:].sum())[1])
    assert torch.equal(one, two)


def test_a_gradient_is_laid_out_as_its_tensor(compiled: Any) -> None:
    x = torch.ones(3, 4, requires_grad=True)
    compiled(lambda x: (x.t() * torch.ones(4, 3)).t().expand(2, 3, 4).sum())(x).backward()
    assert x.grad is not None
    assert x.grad.stride() == (4, 1)
    (gradient,) = torch.autograd.grad(compiled(lambda x: (x.t() * torch.ones(4, 3)).sum())(x), x)
    assert gradient.is_contiguous()


class Owning:
    """A compiled graph that takes tensors over, as compiled backwards may, and says which were alive at its end."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.taken: list[tuple[int, ...]] = []

    def __call__(self, *inputs: Any) -> Any:
        return self.graph(*inputs)

    def call_owning(self, inputs: list[Any], positions: tuple[int, ...]) -> Any:
        self.taken.append(positions)
        results = self.graph(*inputs)
        watched = [weakref.ref(inputs[position]) for position in positions]
        for position in positions:
            inputs[position] = None
        gc.collect()
        assert all(reference() is None for reference in watched), (
            "somebody else holds what was kept for the backward"
        )
        return results


def _owned_run(program: Any, library: Any) -> tuple[Any, list[Owning]]:
    made: list[Owning] = []

    def compiler(graph: Any) -> Any:
        made.append(Owning(graph))
        return made[-1]

    run = aot_function(program, operators=library, forward_compiler=lambda g: g, backward_compiler=compiler)
    return run, made


def test_the_last_backward_owns_what_was_kept_for_it(library: Any) -> None:
    run, made = _owned_run(lambda x: ((s := x.sin()).exp(), s.cos()), library)
    x = torch.randn(3, requires_grad=True)
    for again in (True, False):
        run(x)[0].sum().backward(retain_graph=again)
    retained, last = map(set, made[0].taken)  # gradients that were made for the call, and what was kept
    assert retained < last
    assert torch.allclose(x.grad, 2 * x.cos() * x.sin().exp())


def test_a_backward_owns_gradients_that_are_made_for_it(library: Any) -> None:
    """Zeros for a result without a gradient, however often it runs; not one that somebody else has."""
    run, made = _owned_run(lambda x: (x.sin(), x.cos()), library)
    x = torch.randn(3, requires_grad=True)
    for retained in (True, False):
        run(x)[0].backward(torch.ones(3), retain_graph=retained)
    owned = made[0].taken
    assert len(owned) == 2
    assert len(owned[0]) == 1
    assert owned[0] == owned[1]
    assert torch.allclose(x.grad, 2 * x.cos())
    arriving = torch.ones(3)
    torch.autograd.backward(run(x), [arriving, arriving])
    assert torch.equal(arriving, torch.ones(3))
    assert len(owned) == 2


def test_a_repeated_backward_keeps_all_and_one_too_many_is_refused(library: Any) -> None:
    run, made = _owned_run(lambda x: (x * 2).sin() * 3, library)
    x = torch.randn(3, requires_grad=True)
    result = run(x)
    result.sum().backward(retain_graph=True)
    result.sum().backward()
    assert torch.allclose(x.grad, 12 * (2 * x).cos())
    with pytest.raises(RuntimeError, match="second time"):
        result.sum().backward()


def test_hooks_on_saved_tensors_see_what_is_kept(library: Any) -> None:
    run, made = _owned_run(lambda x: (x * 2).sin() * 3, library)
    x = torch.randn(3, requires_grad=True)
    packed: list[torch.Tensor] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        packed.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = run(x)
    result.sum().backward()
    assert len(packed) == 1
    assert made[0].taken == [(1,)]  # the gradient, which had to be copied


@pytest.mark.parametrize(
    "program", [lambda x: x - 1, lambda x: x.sum(), lambda x: (x + 1, torch.cat([x, x]))]
)
def test_what_keeps_nothing_has_any_number_of_backwards(compiled: Any, program: Any) -> None:
    for run in (program, compiled(program)):
        x = torch.ones(3, requires_grad=True)
        made = run(x)
        for _ in range(3):
            sum(t.sum() for t in (made if isinstance(made, tuple) else (made,))).backward()
        assert x.grad is not None
        assert x.grad.tolist() == [3.0 * (3 if isinstance(made, tuple) else 1)] * 3


def test_a_factor_is_let_go_of(compiled: Any) -> None:
    for run in (lambda x: x * 3, compiled(lambda x: x * 3)):
        made = run(torch.ones(3, requires_grad=True)).sum()
        made.backward()
        with pytest.raises(RuntimeError, match="second time"):
            made.backward()


def test_nothing_is_written_before_an_inference_tensor_is_refused(compiled: Any) -> None:
    def program(x: torch.Tensor, w: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        made = x * w
        count.add_(1)
        return made

    with torch.inference_mode():
        x = torch.ones(3)
    count = torch.zeros(())
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        compiled(program)(x, torch.ones(3, requires_grad=True), count)
    assert count.item() == 0
