"""Tensors that are given other sizes and strides in place: the caller's own, computed ones, before and after breaks."""

import torch

from dynamo_capture import graph_break

X = torch.arange(6.0).reshape(2, 3)


def test_an_argument_changes_its_shape(whole):
    def f(x, y):
        first = x[0]
        x.t_()
        n = x.shape[0]
        y.unsqueeze_(0).squeeze_().transpose_(0, 1)
        return n, first, x.size(), x, x.t() + 1, y.shape

    whole(f, (X, X + 1), (X.repeat(2, 1), X), (X.repeat(2, 2), X.t()))


def test_a_shape_changes_between_breaks(same):
    def f(x):
        x.t_()
        graph_break()
        y = x * 2
        y.unsqueeze_(1)
        graph_break()
        x.unsqueeze_(0)
        return y.shape, x.shape, x.sum() + y

    same(f, (X,), (X.t().contiguous(),))


def test_memory_in_other_sizes(whole):
    def f(x):
        y = x * 2
        y.resize_(2, 2).add_(1)
        x.resize_(3)
        return x, y, x.shape

    whole(f, (X,), (X + 1,))


def test_more_memory_breaks(same):
    def f(x):
        y = x * 2
        y.resize_(7).zero_()
        return y + 1

    same(f, (X,), (X + 1,), breaks=1)


def test_form_and_history(same):
    def f(x):
        y = x * 2
        y.t_()
        return (y * torch.arange(2.0)).sum(), y

    same(f, (X.clone().requires_grad_(),))
