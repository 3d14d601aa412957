"""``torch.autograd.Function`` whose forward writes to an argument or returns it."""

import torch
from torch.autograd import Function

X = torch.arange(6.0).reshape(2, 3) / 6 + 0.5


def given(offset=0.0):
    return (X + offset).requires_grad_()


class InPlace(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 30


def test_an_argument_is_written_to(whole):
    def f(x):
        y = x * 2
        z = InPlace.apply(y)
        return z + y, z is y, y.requires_grad

    whole(f, (given(),), (X,))


def test_writing_to_an_input_of_the_program(whole):
    def f(x, buffer):
        y = buffer + x
        return InPlace.apply(buffer) + y

    whole(f, (given(), X.clone()), (given(), X.clone()), ignore={"version"})  # `mark_dirty` counts as a write


def test_writing_to_a_leaf_or_a_view_is_left_to_eager(same):
    def f(x):
        return InPlace.apply(x)

    def g(x):
        y = x * 2
        InPlace.apply(y[0])
        return y

    same(f, (given(),))
    same(g, (given(),))


class Identity(Function):
    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * -1


class Reverse(Function):
    @staticmethod
    def forward(ctx, x, lambd):
        ctx.lambd = lambd
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.neg() * ctx.lambd, None


def test_an_argument_is_returned(whole):
    def f(x):
        y = Identity.apply(x)
        return y * 2, y is x, y, Reverse.apply(x * 2, 0.5)

    whole(f, (given(),), (X,))


def test_an_argument_is_returned_without_gradients(whole):
    def f(x):
        with torch.no_grad():
            y = Identity.apply(x)
        return y is x, y.requires_grad, Identity.apply(x) * 2

    whole(f, (given(),), (X,))


def test_an_argument_that_is_passed_twice(whole):
    class Product(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            x, y = ctx.saved_tensors
            return grad * y * 2, grad * x * 3

    apply = Product.apply
    whole(lambda x: apply(x, x), (given(),), ignore={"grad version"})
