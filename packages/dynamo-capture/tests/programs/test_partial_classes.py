"""Calls of objects whose class is derived from ``functools.partial``."""

import functools

import pytest
import torch

from dynamo_capture import optimize


class Named(functools.partial):
    name = "named"

    def doubled(self, x):
        return self(x) * 2


class Shifted(functools.partial):
    def __call__(self, x):
        return super().__call__(x) + self.shift


class OtherFunction(functools.partial):
    @property
    def func(self):
        return torch.sub


def shifted(shift, *args, **kwargs):
    made = Shifted(*args, **kwargs)
    made.shift = shift
    return made


def test_existing_ones_are_called(whole):
    def f(x, p):
        return p(x), p.doubled(x), p.name, p.func, p.args

    whole(f, (torch.ones(3), Named(torch.add, 1, alpha=2)), (torch.ones(3), Named(torch.add, 1, alpha=3)))


def test_a_call_of_the_base_class(whole):
    whole(lambda x, p: p(x) * 2, *[(torch.ones(3), shifted(k, torch.mul, 3)) for k in range(2)])


def test_each_is_called_with_its_own_arguments():
    x = torch.rand(3) + 1
    fast = optimize(lambda graph, _: graph)(lambda x, p: p(x) * 2)
    for p in (
        Named(torch.sum, dim=0),
        Named(torch.sum, dim=0, keepdim=True),
        Named(torch.sum),
        Named(torch.add, 1, alpha=3),
        Named(torch.addcmul, x, x),
        OtherFunction(torch.mul, 2),
        shifted(1, torch.mul, 3),
    ):
        for _ in range(2):
            assert torch.equal(fast(x, p), p(x) * 2)
    with pytest.raises(TypeError, match="bogus"):
        fast(x, Named(torch.sum, bogus=1))


def test_its_keywords_are_changed_from_outside():
    p = Named(torch.add, 1, alpha=2)
    fast = optimize(lambda graph, _: graph)(lambda x: p(x) * 2)
    for alpha in (2, 3, 5):
        p.keywords["alpha"] = alpha
        assert torch.equal(fast(torch.ones(3)), p(torch.ones(3)) * 2)
    p.__setstate__((torch.sub, (2,), {}, None))
    assert torch.equal(fast(torch.ones(3)), p(torch.ones(3)) * 2)
