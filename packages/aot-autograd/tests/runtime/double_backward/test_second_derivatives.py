from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch

_PLACES_KNOWN = pytest.mark.skipif(
    not hasattr(torch._C._autograd, "_make_saved_tensor"), reason="torch tells no place in autograd's graph"
)
REFUSED = r"(?s)AOT301.*{}.*without the compiler"


def D(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes, dtype=torch.float64, requires_grad=True)


def derivatives(function: Callable[..., Any], x: torch.Tensor, order: int) -> list[torch.Tensor]:
    found = [function(x).sum()]
    for _ in range(order):
        found.append(torch.autograd.grad(found[-1].sum(), x, create_graph=True)[0])
    return found


def test_derivatives_of_any_order_are_eagers(compiled: Any) -> None:
    x = D(4)

    def function(x: torch.Tensor) -> torch.Tensor:
        return (x**4 + x.sin() * x).exp().log()

    expected, found = derivatives(function, x, 4), derivatives(compiled(function), x, 4)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_a_gradient_penalty_reaches_the_weights(compiled: Any) -> None:
    x, w = D(5, 3), D(3, 1)

    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ w).square()

    found = []
    for run in (function, compiled(function)):
        (slope,) = torch.autograd.grad(run(x, w).sum(), x, create_graph=True)
        found.append(torch.autograd.grad((slope.norm(dim=1) - 1).square().mean(), [x, w]))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_an_input_computed_from_another_is_not_differentiated_through(compiled: Any) -> None:
    x = D(3)

    def function(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a * b.exp()

    run, found = compiled(function), []
    for one in (function, run):
        b = x.sin()
        (first,) = torch.autograd.grad(one(x, b).sum(), x, create_graph=True)
        found.append((first, *torch.autograd.grad(first.sum(), x)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("keeps", [False, True])
def test_a_gradient_is_asked_for_inside_of_transforms(compiled: Any, keeps: bool) -> None:
    """What the call was given requires grad outside of the transform, and nothing does inside."""
    x, found = D(3), []

    def function(x: torch.Tensor) -> torch.Tensor:
        return (x**3).sin()

    for run in (function, compiled(function)):
        y = run(x)

        def gradient(v: torch.Tensor, y: torch.Tensor = y) -> torch.Tensor:
            return torch.autograd.grad(y, x, v, retain_graph=True, create_graph=keeps)[0]

        value, pull_back = torch.func.vjp(gradient, x)
        at = x.detach()
        found.append(
            (
                value,
                *(pull_back(torch.ones_like(x)) if keeps else ()),
                torch.func.grad(lambda v: gradient(v).sum())(at),
                torch.func.jacrev(gradient)(at),
                torch.func.jvp(gradient, (at,), (torch.ones_like(at),))[1],
                torch.vmap(gradient)(torch.eye(3, dtype=x.dtype)),
            )
        )
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_gradients_depend_on_what_arrives(compiled: Any) -> None:
    x, weight = D(3), D(3)
    run = compiled(lambda x: x * x)
    (gradient,) = torch.autograd.grad(run(x), x, weight, create_graph=True)
    (found,) = torch.autograd.grad(gradient.sum(), weight)
    torch.testing.assert_close(found, 2 * x, rtol=0, atol=0)


def test_a_result_that_is_not_used_has_no_part(compiled: Any) -> None:
    x = D(3)
    used, _ = compiled(lambda x: (x**3, x.sin()))(x)
    (first,) = torch.autograd.grad(used.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(second, 6 * x, rtol=0, atol=0)


REPEATED: dict[str, Callable[[torch.Tensor], Any]] = {
    "random": lambda x: torch.dropout(x.exp(), 0.5, True) * torch.rand_like(x),
    "view": lambda x: x.exp().view(-1)[:2],
    "two views": lambda x: (x.exp().view(-1)[:2], x.sin()),
    "views of one": lambda x: (y := x.exp() * x).unbind() + (y,),
    "the input": lambda x: (x, x.sin(), x.t()),
    "repeated": lambda x: [x.sin()] * 2,
}


@pytest.mark.parametrize("name", REPEATED)
def test_random_numbers_and_views_are_repeated(name: str, compiled: Any) -> None:
    x, found = D(3), []
    for run in (REPEATED[name], compiled(REPEATED[name])):
        torch.manual_seed(5)
        results = run(x)
        results = [results] if isinstance(results, torch.Tensor) else list(results)
        total = sum((result.square().sum() for result in results), torch.zeros((), dtype=torch.float64))
        drawn = torch.rand(2)
        (first,) = torch.autograd.grad(total, x, create_graph=True)
        found.append((drawn, torch.rand(2), first, *torch.autograd.grad(first.square().sum(), x)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_autocast_is_repeated(compiled: Any) -> None:
    x, w = torch.randn(3, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
    run, found = compiled(lambda x, w: (x @ w).float().tanh()), []
    for one in (lambda x, w: (x @ w).float().tanh(), run):
        with torch.autocast("cpu", torch.bfloat16):
            result = one(x, w)
        (first,) = torch.autograd.grad(result.sum(), x, create_graph=True)
        found.append((first, *torch.autograd.grad(first.square().sum(), [x, w])))
    for left, right in zip(*found, strict=True):
        torch.testing.assert_close(left, right, rtol=2e-2, atol=2e-2)


def test_counters_that_are_written_do_not_matter(compiled: Any) -> None:
    x, found = D(4, 3), []
    for make in (lambda f: f, compiled):
        mean = torch.zeros(3, dtype=torch.float64)

        result = make(_normalized)(x, mean)
        (first,) = torch.autograd.grad(result.pow(3).sum(), x, create_graph=True)
        found.append((first, *torch.autograd.grad(first.square().sum(), x), mean))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_constants_of_the_program_are_no_inputs(compiled: Any) -> None:
    x, found = D(4), []

    def function(x: torch.Tensor) -> torch.Tensor:
        return x[[0, 2]].sin()

    for run in (function, compiled(function)):
        (first,) = torch.autograd.grad(run(x).sum(), x, create_graph=True)
        found.append((first, *torch.autograd.grad(first.square().sum(), x)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
def test_running_statistics_do_not_matter_in_training(name: str, compiled: Any) -> None:
    x, w = D(4, 3, 2), D(3)

    def function(x: torch.Tensor, w: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> torch.Tensor:
        normalized = getattr(torch.nn.functional, name)
        switch = {"training" if name == "batch_norm" else "use_input_stats": True}
        result: torch.Tensor = normalized(x, mean, var, w, **switch)
        return result.tanh()

    found = []
    for run in (function, compiled(function)):
        mean, var = torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
        (first,) = torch.autograd.grad(run(x, w, mean, var).pow(3).sum(), x, create_graph=True)
        found.append((first, *torch.autograd.grad(first.square().sum(), [x, w]), mean, var))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def _normalized(x: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    mean.mul_(0.9).add_(x.detach().mean(0))
    return (x - x.mean(0)) / x.std(0)


def test_an_input_that_changed_is_refused(compiled: Any) -> None:
    run = compiled(lambda x, shift: x.exp() + shift)
    x, shift = D(3), torch.ones(3, dtype=torch.float64)
    result = run(x, shift)
    shift.add_(1)
    (gradient,) = torch.autograd.grad(result.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=REFUSED.format("changed in place")):
        gradient.sum().backward()


@_PLACES_KNOWN
@pytest.mark.parametrize("chosen", [False, True])
@pytest.mark.parametrize("unpack", [lambda t: t, lambda t: t.clone()])
def test_a_large_input_that_is_gone_under_hooks_on_saved_tensors_is_refused(
    compiled: Any, chosen: bool, unpack: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    """Such hooks decide what is kept in memory. Its place in autograd's graph is known still, so that a derivative with
    respect to chosen tensors is refused, too."""
    x = D(20000)
    seen: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (seen.append(t), t.detach())[1], unpack):
        result = compiled(lambda h, x: h.tanh() * x)(x * 2, x)
    assert all(tensor._version == 0 for tensor in seen)
    (gradient,) = torch.autograd.grad(result.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=REFUSED.format("gone")):
        _ = torch.autograd.grad(gradient.sum(), x) if chosen else gradient.sum().backward()


def test_a_small_input_is_kept_beside_hooks_on_saved_tensors(compiled: Any) -> None:
    """Nobody minds its memory, and the hooks are not called for it."""
    x, found = D(3), []
    for wrap in (lambda function: function, compiled):
        with torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda t: t):
            result = wrap(lambda h, x: h.tanh() * x)(x * 2, x)
        (gradient,) = torch.autograd.grad(result.sum(), x, create_graph=True)
        found.append((gradient, *torch.autograd.grad(gradient.sum(), x)))
    torch.testing.assert_close(found[1], found[0])


def test_inputs_are_kept_until_a_backward_lets_go(compiled: Any) -> None:
    x, shift = D(3), torch.ones(3, dtype=torch.float64)
    result = compiled(lambda x, shift: x.exp() + shift)(x, shift)
    alive = weakref.ref(shift)
    del shift
    result.sum().backward(retain_graph=True)
    assert alive() is not None
    result.sum().backward()
    assert alive() is None
    assert result.requires_grad


class Half(torch.Tensor):
    """A tensor without memory of its own, which stands for half of another."""

    @staticmethod
    def __new__(cls, twice: torch.Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, twice.shape, dtype=twice.dtype)

    def __init__(self, twice: torch.Tensor) -> None:
        self.twice = twice

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.detach.default:
            return cls(args[0].twice)
        plain = [value.twice / 2 if isinstance(value, cls) else value for value in args]
        return cls(func(*plain, **(kwargs or {})) * 2)


def test_a_gradient_of_another_class_is_computed_by_that_class(compiled: Any) -> None:
    x = D(3)
    run = compiled(lambda x: x.sin() * 2)
    run(x).backward(Half(torch.ones(3, dtype=torch.float64)))
    grad: Any = x.grad
    assert type(grad) is Half
    assert not grad.requires_grad
    torch.testing.assert_close(grad.twice / 2, x.detach().cos(), rtol=0, atol=0)


def test_a_gradient_whose_memory_is_negated(compiled: Any) -> None:
    x = D(3)
    negated = torch.complex(x.detach(), x.detach()).conj().imag
    assert negated.is_neg()
    compiled(lambda x: x * 2)(x).backward(negated)
    torch.testing.assert_close(x.grad, -2 * x.detach(), rtol=0, atol=0)


def test_a_gradient_that_does_not_arrive_is_not_computed(compiled: Any) -> None:
    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return None

    x = D(3)
    y = compiled(lambda x: x.exp())(x)
    y.sum().backward()
    x.grad = None
    Nothing.apply(y).sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is None


def test_inputs_that_are_gone_are_made_again_by_the_functions_that_made_them(compiled: Any) -> None:
    steps = [lambda x: x.sin() * x, lambda x: x.exp() + x, lambda x: (x * x).cos()]
    x = D(4)

    def chain(functions: Any) -> Any:
        def function(x: torch.Tensor) -> torch.Tensor:
            for step in functions:
                x = step(x)
            return x

        return function

    expected = derivatives(chain(steps), x, 3)
    for one, other in zip(
        derivatives(chain([compiled(step) for step in steps]), x, 3), expected, strict=True
    ):
        torch.testing.assert_close(one, other)


def test_an_input_that_was_written_to_and_is_gone_is_refused(compiled: Any) -> None:
    x = D(4)
    middle = compiled(lambda x: x.sin() + x)(x)
    with torch.no_grad():
        middle.mul_(2)
    result = compiled(lambda x: (x + 1).exp())(middle)
    del middle
    (gradient,) = torch.autograd.grad(result.sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=REFUSED.format("gone")):
        torch.autograd.grad(gradient.sum(), x)


def test_an_input_that_only_the_program_itself_differentiates(compiled: Any) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        (inner,) = torch.autograd.grad(x.sin().sum(), x)
        return inner, y.exp() * inner

    found = []
    for run in (program, compiled(program)):
        x, y = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        (first,) = torch.autograd.grad(run(x, y)[1].sum(), y, create_graph=True)
        found.append(torch.autograd.grad(first.sum(), y)[0])
    torch.testing.assert_close(*found, rtol=0, atol=0)


@pytest.mark.parametrize("late", [False, pytest.param(True, marks=_PLACES_KNOWN)])
def test_hooks_of_an_input_that_is_gone_are_called(compiled: Any, late: bool) -> None:
    def gradients(first: Any, second: Any) -> list[Any]:
        seen: list[Any] = []

        def hook(gradient: torch.Tensor) -> torch.Tensor:
            seen.append(gradient)
            return gradient * 2

        x = D(3)
        between = first(x)
        if not late:
            between.register_hook(hook)
        result = second(between)
        if late:
            between.register_hook(hook)
        del between
        (slope,) = torch.autograd.grad(result.sum(), x, create_graph=True)
        slope.sum().backward()
        return [*(each.detach() for each in seen), x.grad]

    def first(x: torch.Tensor) -> torch.Tensor:
        return x * x

    def second(x: torch.Tensor) -> torch.Tensor:
        return (x + 1).exp() * 2

    torch.manual_seed(0)
    expected = gradients(first, second)
    torch.manual_seed(0)
    found = gradients(compiled(first), compiled(second))
    assert len(expected) == len(found) == 3
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


@_PLACES_KNOWN
def test_an_input_that_has_hooks_is_freed(compiled: Any) -> None:
    between = compiled(lambda x: x * x)(D(3))
    between.register_hook(lambda gradient: None)
    alive = weakref.ref(between)
    result = compiled(lambda x: x.exp())(between)
    del between
    assert alive() is None
    assert result.requires_grad


def test_zeros_that_would_become_nan_where_an_input_is_gone(compiled: Any) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.sum(), x.sqrt().sum()

    x = torch.tensor([0.0, 4.0], requires_grad=True)
    total, _ = compiled(program)(x.view(2, 1))
    total.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0, 1.0]


def test_a_write_without_history_to_another_input(compiled: Any) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            y[0].add_(1)
        return x.sum() + x.exp().sum()

    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    (slope,) = torch.autograd.grad(compiled(program)(x, y), x, create_graph=True)
    (second,) = torch.autograd.grad(slope.sum(), x)
    torch.testing.assert_close(second, x.detach().exp(), rtol=0, atol=0)


def test_a_program_that_turns_gradients_on_by_itself(compiled: Any) -> None:
    x, w = D(3), D(3)

    def function(x: torch.Tensor, w: torch.Tensor) -> Any:
        constant = x * w
        with torch.enable_grad():
            hidden = (constant * x).sin() * w
            return hidden, hidden.exp()

    found = []
    for run in (function, compiled(function)):
        with torch.no_grad():
            hidden, result = run(x, w)
        (first,) = torch.autograd.grad(result.sum(), x, create_graph=True)
        second = torch.autograd.grad(first.sum(), [x, w])
        with torch.no_grad():
            hidden, result = run(x, w)
        found.append((first, *second, *torch.autograd.grad(result.sum(), hidden)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)


def test_a_second_derivative_of_an_input_that_nobody_else_holds(compiled: Any) -> None:
    """Eager's formula of ``tanh`` gets by with its result, the program run again does not."""

    def gradients(function: Any) -> Any:
        x = torch.arange(3.0, requires_grad=True)
        total = function(x * 2)
        (gradient,) = torch.autograd.grad(total, x, create_graph=True)
        gradient.sum().backward()
        return x.grad

    def program(h: torch.Tensor) -> torch.Tensor:
        return h.tanh().sum()

    torch.testing.assert_close(gradients(compiled(program)), gradients(program))


def test_a_second_derivative_with_respect_to_a_leaf_of_the_functions_own(compiled: Any) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale = torch.full((3,), 0.5, requires_grad=True)
        return (x * scale).tanh().sum(), scale

    def gradients(function: Any) -> list[Any]:
        x = torch.arange(3.0, requires_grad=True)
        total, scale = function(x)
        (gradient,) = torch.autograd.grad(total, x, create_graph=True)
        (gradient**2).sum().backward()
        return [x.grad, scale.grad]

    for wanted, found in zip(gradients(program), gradients(compiled(program)), strict=True):
        torch.testing.assert_close(found, wanted)


@_PLACES_KNOWN
def test_an_input_that_is_detached_in_place(compiled: Any) -> None:
    def program(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        a.detach_()
        return a * x.exp()

    found = []
    for run in (program, compiled(program)):
        x = torch.linspace(0, 1, 3, dtype=torch.float64).requires_grad_()
        a = x + 2
        (first,) = torch.autograd.grad(run(a, x).sum(), x, create_graph=True)
        found.append([first, *torch.autograd.grad((first * first).sum(), x)])
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)
