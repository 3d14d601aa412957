"""Derivatives of derivatives, and rules for transforms, of ``torch.autograd.Function``."""

import warnings

import pytest
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3) / 6 + 0.5


def given(offset=0.0):
    return (X + offset).requires_grad_()


class Once(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x


class Twice(Once):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * x


def test_second_derivatives():
    def second(f):
        x = given()
        (first,) = torch.autograd.grad(f(x).pow(2).sum(), x, create_graph=True)
        first.sum().backward()
        return x.grad

    fast = optimize(lambda graph_module, _: graph_module.forward, fullgraph=True)
    assert torch.equal(second(Twice.apply), second(fast(lambda x: Twice.apply(x))))
    with pytest.raises(RuntimeError, match="once_differentiable"):
        second(fast(lambda x: Once.apply(x)))


class Inner(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.cos() * 5


class Outer(Function):
    @staticmethod
    def forward(ctx, x):
        y = Inner.apply(x)
        ctx.save_for_backward(y)
        return Inner.apply(y)

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return Inner.apply(grad * y)


def test_functions_in_functions(whole):
    whole(lambda x: Outer.apply(x) + Inner.apply(x), (given(),), (given(1.0),))


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**2

    @staticmethod
    def backward(ctx, grad):
        return grad * 5 * ctx.saved_tensors[0]


class BackwardCallsAnother(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x**2 + Square.apply(x)


class BackwardWithoutGradients(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with torch.no_grad():
            constant = x * 2
        with torch.enable_grad():
            grad = grad * x
        with torch.set_grad_enabled(False):
            constant = constant * x
        return grad * constant


class BackwardUnderAutocast(Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0] ** 2


@pytest.mark.parametrize(
    "function", [Outer, BackwardCallsAnother, BackwardWithoutGradients, BackwardUnderAutocast]
)
def test_what_a_backward_does_is_differentiated_again(function):
    fast = optimize(lambda graph_module, _: graph_module.forward, fullgraph=True)(lambda x: function.apply(x))
    found = []
    for run in (function.apply, fast):
        x = given()
        (first,) = torch.autograd.grad(run(x).pow(2).sum(), x, create_graph=True)
        found.append([first, *torch.autograd.grad(first.sum(), x)])
    torch.testing.assert_close(*found, rtol=0, atol=0)
    assert torch.is_grad_enabled()


class Recursive(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx, grad):
        return grad * Recursive.apply(ctx.saved_tensors[0] + 1.5)


def test_a_function_in_its_own_backward_breaks(same):
    same(lambda x: Recursive.apply(x) * 2, (given(),), breaks=1)


class WithRules(Function):
    @staticmethod
    def forward(x):
        return x**2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 9 * ctx.saved_tensors[0]

    @staticmethod
    def vmap(info, in_dims, x):
        return WithRules.apply(x) + info.batch_size, in_dims[0]


def test_rules_for_transforms_are_used():
    def f(x):
        return torch.func.jvp(WithRules.apply, (x,), (torch.ones(3),)), torch.func.vmap(WithRules.apply)(x)

    fast = optimize(lambda graph_module, _: graph_module.forward)(f)
    torch.testing.assert_close(fast(torch.arange(3.0)), f(torch.arange(3.0)), rtol=0, atol=0)


def test_what_has_no_rule_for_a_transform_raises():
    fast = optimize(lambda graph_module, _: graph_module.forward)(lambda x: torch.func.vmap(Square.apply)(x))
    with pytest.raises(RuntimeError, match="setup_context"):
        fast(torch.arange(3.0))


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x * 2)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        (doubled,) = ctx.saved_tensors
        return gradient * doubled


def test_an_instance_that_is_made_only_to_be_applied(whole):
    def program(x):
        return Doubled().apply(x) + 1, Doubled().apply(x.detach())

    x = torch.arange(3.0, requires_grad=True)
    whole(program, (x,), (torch.ones(2, requires_grad=True),))


def test_what_an_instance_holds_is_pythons(same):
    def program(x):
        made = Doubled()
        made.note = x * 2
        return made.needs_input_grad, made.note, made.metadata is not None

    same(program, (torch.ones(2),))


class TooFew(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        return x * factor

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def test_a_backward_that_returns_too_few_gradients_raises_when_it_runs():
    def program(x):
        return TooFew.apply(x, 3) * 2

    compiled = optimize(lambda graph, _: graph.forward, fullgraph=True)(program)
    x = torch.ones(3, requires_grad=True)
    said = []
    for function in (program, compiled):
        result = function(x)
        with pytest.raises(RuntimeError) as caught:
            result.sum().backward()
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert torch.equal(compiled(torch.ones(3)), program(torch.ones(3)))


class Keeping(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.x * 2


def test_what_a_context_keeps_is_not_saved():
    found = []
    fast = optimize(lambda graph_module, _: graph_module.forward, fullgraph=True)
    for run in (Keeping.apply, fast(lambda x: Keeping.apply(x))):
        x = given()
        result = run(x)
        result.sum().backward()
        with torch.no_grad():
            x.add_(1)
        result.sum().backward()
        found.append(x.grad)
    assert torch.equal(*found)


class OldName(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x, factor)
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        x, factor = ctx.saved_variables
        return grad * factor, (grad * x).sum()


def test_what_is_saved_is_asked_for_by_its_old_name():
    """Its warning is given where the function is applied, as one of the line that asks."""

    def f(x, factor):
        return OldName.apply(x, factor).sin()

    fast = optimize(lambda graph_module, inputs: graph_module.forward, fullgraph=True)(f)
    outcomes = []
    for function in (f, fast, fast):
        x, factor = given(), torch.tensor(2.0, requires_grad=True)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            function(x, factor).sum().backward()
        outcomes.append((x.grad.tolist(), factor.grad.item(), [(str(w.message), w.lineno) for w in told]))
    assert len(outcomes[0][2]) == 1
    assert outcomes[1:] == [outcomes[0], outcomes[0]]
