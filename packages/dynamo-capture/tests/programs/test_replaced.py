"""What is replaced or changed between calls: functions, methods, properties, class attributes, defaults."""

import torch
from torch import nn

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3) + 1


def test_called_function_is_replaced(forward):
    def inner(x):
        return x + 1

    def f(x):
        return inner(x)

    fast = optimize(forward)(f)
    assert torch.equal(fast(X), X + 1)
    old = inner

    def inner(x):
        return old(x) * 2

    assert torch.equal(fast(X), (X + 1) * 2)


def test_method_is_replaced_on_its_class(forward):
    class Local:
        def go(self, x):
            return x + 1

    class Below(Local):
        pass

    def f(x, o):
        return o.go(x)

    fast = optimize(forward)(f)
    assert torch.equal(fast(X, Below()), X + 1)
    Local.go = lambda self, x: x + 2
    assert torch.equal(fast(X, Below()), X + 2)
    Below.go = lambda self, x: x + 3
    assert torch.equal(fast(X, Below()), X + 3)


def test_property_is_replaced_on_its_class(forward):
    class Local:
        @property
        def p(self):
            return 1

        @staticmethod
        def s():
            return 1

        @classmethod
        def c(cls):
            return 1

    def f(x, o):
        return x + o.p * 100 + o.s() * 10 + o.c()

    fast = optimize(forward)(f)
    assert torch.equal(fast(X, Local()), X + 111)
    Local.p = property(lambda self: 2)
    assert torch.equal(fast(X, Local()), X + 211)
    Local.s = staticmethod(lambda: 2)
    assert torch.equal(fast(X, Local()), X + 221)
    Local.c = classmethod(lambda cls: 2)
    assert torch.equal(fast(X, Local()), X + 222)


def test_method_is_replaced_on_a_module_class(forward):
    class Net(nn.Module):
        def helper(self, x):
            return x + 1

        def forward(self, x):
            return self.helper(x)

    net = Net()
    fast = optimize(forward)(net)
    assert torch.equal(fast(X), X + 1)
    Net.helper = lambda self, x: x + 2
    assert torch.equal(fast(X), X + 2)
    Net.forward = lambda self, x: x + 3
    assert torch.equal(fast(X), X + 3)
    net.forward = lambda x: x + 4
    assert torch.equal(fast(X), X + 4)


def test_super_method_is_replaced(forward):
    class Top:
        def go(self, x):
            return x + 1

    class Low(Top):
        def go(self, x):
            return super().go(x) * 2

    def f(x, o):
        return o.go(x)

    fast = optimize(forward)(f)
    assert torch.equal(fast(X, Low()), (X + 1) * 2)
    Top.go = lambda self, x: x + 2
    assert torch.equal(fast(X, Low()), (X + 2) * 2)


def test_class_attribute_changes(forward):
    class Local:
        k = 1

    def f(x, o):
        return x + o.k + Local.k

    fast = optimize(forward)(f)
    one = Local()
    assert torch.equal(fast(X, one), X + 2)
    Local.k = 5
    assert torch.equal(fast(X, one), X + 10)
    one.k = 7
    assert torch.equal(fast(X, one), X + 12)
    del one.k
    assert torch.equal(fast(X, one), X + 10)


def test_class_attribute_of_an_object_made_inside(forward):
    class Local:
        k = 1

        def go(self, x):
            return x + self.k

    def f(x):
        return Local().go(x)

    fast = optimize(forward)(f)
    assert torch.equal(fast(X), X + 1)
    Local.k = 2
    assert torch.equal(fast(X), X + 2)
    Local.go = lambda self, x: x * 5
    assert torch.equal(fast(X), X * 5)


def test_default_argument_is_mutable(same):
    def make():
        def f(x, seen=[]):  # noqa: B006
            seen.append(len(seen))
            return x + seen[-1], list(seen)

        return f

    same.made(make, (X,), (X,), (X,))


def test_default_of_a_called_function_is_mutable(same):
    def make():
        def g(x, seen=[]):  # noqa: B006
            seen.append(len(seen))
            return x + seen[-1]

        return lambda x: g(x)

    same.made(make, (X,), (X,), (X,))
