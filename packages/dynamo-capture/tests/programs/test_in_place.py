"""Tensors written in place: arguments, views, results, attributes."""

import torch

X = torch.arange(6.0).reshape(2, 3) + 1


def test_in_place_on_argument(same):
    def f(x):
        x.add_(1)
        x *= 2
        x[0] = 7
        x[:, 1] += 1
        return x.sum()

    same(f, (X,), (X + 1,))


def test_in_place_result_is_the_argument(same):
    def f(x):
        return x.mul_(2) is x, x.add_(1)

    same(f, (X,))


def test_views_see_writes(same):
    def f(x):
        row = x[0]
        row.add_(10)
        flat = x.view(-1)
        flat[1] = -1
        return x, row, flat.sum()

    same(f, (X,))


def test_write_then_break_then_write(same, unknown):
    def f(x):
        x.add_(1)
        n = unknown(x.sum())
        x.mul_(n)
        return x

    same(f, (X,))


def test_two_arguments_of_one_storage(same):
    base = torch.arange(6.0)

    def f(pair):
        a, b = pair
        a.add_(1)
        return b * 2

    def make():
        base = torch.arange(6.0)
        return lambda: f((base, base[2:4]))

    same.made(make, (), ())


def test_out_argument(same):
    def f(x):
        out = torch.empty_like(x)
        torch.add(x, 1, out=out)
        return out

    same(f, (X,))


def test_detach_and_requires_grad(same):
    def f(x):
        y = x.detach() * 2
        return y, (x * y), x.requires_grad, y.requires_grad

    same(f, (X.clone().requires_grad_(),))


def test_grad_property(same):
    given = X.clone().requires_grad_()
    same(lambda x: x * 2 if x.grad is None else x * 3, (given,))


def given():
    return X.clone().requires_grad_()


def test_in_place_by_position(whole):
    def f(x):
        y = x - 3
        torch.nn.functional.relu(y, True)
        torch.nn.functional.batch_norm(x, mean := torch.zeros(3), torch.ones(3), None, None, True)
        torch.ops.aten.add_.Tensor(y, 1)
        return y, mean

    whole(f, (X,), (X + 1,))


def test_in_place_on_inputs_and_views(whole):
    def f(x, y):
        x.add_(1)
        x[0].mul_(2)
        view = y.view(-1)
        view[1:3] = 0
        y.t()[0] = 5
        torch.add(x, y, out=x)
        return x is x.add_(0), view

    whole(f, (X, X + 1), (X * 2, X))


def test_in_place_on_a_leaf_under_no_grad(whole):
    def f(w, g):
        with torch.no_grad():
            w -= 0.1 * g
            w.mul_(2)
        return w * 3

    whole(f, (given(), X), (given(), X + 1))


def test_in_place_on_a_leaf_is_an_error(same):
    same(lambda w: w.add_(1), (given(),), (X,))


def test_tensor_attributes_are_set(same):
    def f(x):
        x.note = "seen"
        x.scale = 2
        return x * x.scale, x.note, hasattr(x, "other")

    same(f, (X,), (X,))


def test_data_and_detach(whole):
    def f(x):
        return x.data * 2, x.detach().requires_grad, x.clone().requires_grad, (x * 2).detach() + x

    whole(f, (given(),), (X,))


def test_a_number_is_copied(whole):
    def f(x):
        y = torch.zeros(3, dtype=torch.int32)
        y.copy_(True)
        return (x * 2).copy_(2.5) + 1, y, x.copy_(7), torch.zeros(2, 3)[0].copy_(3)

    whole(f, (torch.ones(2),))
