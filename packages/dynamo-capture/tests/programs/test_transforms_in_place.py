"""``vmap`` over functions that write to their arguments, or give them back."""

import torch
from torch.func import vmap

X = torch.arange(6.0).reshape(2, 3) / 7


def given():
    return (X + 0.1).requires_grad_()


def test_an_argument_is_written_to(whole):
    def program(x):
        y = vmap(torch.Tensor.acos_)(x)
        y += 1
        return y is x, y * 2, x + 1, x.view(-1)

    whole(program, (X,), (X / 2,), (X[:1] + 0.2,))


def test_several_arguments_and_effects(whole):
    def program(y, z, log):
        a, b = y.clone(), z.clone()

        def function(a, b, c):
            return {"a": a.acos_(), "b": b.mul_(c)}

        found = vmap(function, in_dims=(0, 0, None))(a, b, y.sum())
        log.append(a)
        return found["a"] is a, found["b"] is b, a is found["b"], a, b, log

    whole(program, (X, X[:, :1] + 1, []), (X / 2, X + 2, []))


def test_training(whole):
    def program(x, w):
        y = x * 2
        total = vmap(lambda row: row.mul_(w).sum())(y)
        return total, y, y.sin()

    w = torch.ones(3, requires_grad=True)
    whole(program, (given(), w), (X, w), (given(), torch.ones(3)))


def test_maps_in_maps_and_loops(whole):
    def program(x, n):
        for _ in range(n):
            vmap(vmap(lambda a: a.add_(1)))(x)
            x = vmap(torch.Tensor.mul_, in_dims=(0, None))(x, 3)
        return x

    whole(program, (X, 2), (X + 1, 3))


def test_in_chunks(whole):
    def program(x):
        y = torch.vmap(lambda a: a.exp_() * 2, chunk_size=2)(x)
        return y, x

    whole(program, (torch.arange(12.0).reshape(4, 3) / 9,))


def test_what_gives_its_argument_back(whole):
    def program(x):
        y = vmap(lambda a, b: (a, b), out_dims=(1, 0))(x, x.T.contiguous().T)
        z = vmap(lambda a: a)(x)
        z.add_(1)
        return y, z is x, y[1] * 2

    whole(program, (X,), (X + 1,))


def test_what_may_not_be_known_breaks(same):
    def twice(x):
        return vmap(lambda a: a.add_(1).mul_(2))(x), x

    def again(x):
        return vmap(lambda a, b: a.add_(b))(x, x), x

    def around(x):
        return vmap(lambda a: a.add_(x[1]))(x), x

    def a_view(x):
        return vmap(lambda a: a.add_(1)[1:])(x).mul_(2), x

    def columns(x):
        return vmap(lambda a: a.add_(1), in_dims=1, out_dims=1)(x), x

    for program in (twice, again, around, a_view, columns):
        same(program, (X,), (X + 1,))


def test_a_leaf_that_is_followed_raises(same):
    def program(x):
        try:
            return vmap(torch.Tensor.acos_)(x)
        except RuntimeError as error:
            return type(error), x

    same(program, (given(),), (given(),))


def test_a_graph_ends_around_it(same):
    def program(x):
        y = x + 1
        vmap(torch.Tensor.exp_)(y)
        if y.sum() > 10:
            y = vmap(torch.Tensor.neg_)(y)
        return y, x

    same(program, (X,), (X + 2,))
