"""Objects with state, special methods, identity; and which changes of an argument its guards see."""

import enum
import functools

import pytest
import torch

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3) + 1


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Base:
    factor = 2

    def __init__(self, value):
        self.value = value

    def apply(self, x):
        return x * self.factor + self.value

    @property
    def double(self):
        return self.value * 2

    @double.setter
    def double(self, new):
        self.value = new / 2

    @classmethod
    def make(cls, value):
        return cls(value)

    @staticmethod
    def plus(x):
        return x + 1


class Child(Base):
    factor = 3

    def apply(self, x):
        return super().apply(x) - 1

    def __call__(self, x):
        return self.apply(x)

    def __eq__(self, other):
        return isinstance(other, Child) and self.value == other.value

    __hash__ = None

    def __getitem__(self, key):
        return self.value + key

    def __len__(self):
        return 4

    def __contains__(self, key):
        return key == "here"

    def __add__(self, other):
        return Child(self.value + other)

    __radd__ = __add__


def test_objects(same):
    def f(x, o):
        return o.apply(x), o.double, o.plus(x), type(o).__name__, o.make(3).value, isinstance(o, Base)

    same(f, (X, Base(3)), (X, Child(4)), (X, Base(X)))


def test_special_methods(same):
    def f(x, o):
        return o(x), o[2], len(o), "here" in o, bool(o), o == Child(3), (o + 1).value, (1 + o).value

    same(f, (X, Child(3)), (X, Child(5)))


def test_attributes_are_set(same):
    def f(x, o):
        o.value = x * 2
        o.new = "n"
        o.double = 8
        return o.value, o.new

    same(f, (X, Base(1)), (X, Base(2)))


def test_attributes_are_swapped(same):
    def f(o):
        o.value, o.other = o.other, o.value
        return o.value + 1

    def given():
        made = Base(X)
        made.other = X * 3
        return made

    same(f, (given(),), (given(),))


def test_attributes_are_deleted(same):
    def f(x, o):
        del o.value
        return x, hasattr(o, "value")

    same(f, (X, Base(1)))


def test_attribute_missing_then_present(same):
    def f(x, o):
        return x + getattr(o, "extra", 1)

    with_extra = Base(1)
    with_extra.extra = 5
    same(f, (X, Base(1)), (X, with_extra), (X, Base(1)))


def test_state_kept_in_an_object(same):
    def make():
        state = Base(0)

        def f(x):
            state.value += 1
            state.last = x
            return x + state.value

        return f

    same.made(make, (X,), (X,), (X,), (X,))


def test_object_made_and_mutated(same):
    def f(x):
        o = Base(x)
        o.value = o.value + 1
        o.items = [1]
        o.items.append(o.value)
        return o, o.items

    same(f, (X,))


def test_object_held_in_a_cycle(same, forward):
    def f(x):
        o = Base(x)
        o.me = o
        return x + 1, o

    fast = optimize(forward)(f)
    value, o = fast(X)
    assert o.me is o
    assert torch.equal(value, X + 1)


def test_recursive_data(same):
    def depth(tree):
        return 0 if tree is None else 1 + max(depth(tree[0]), depth(tree[1]))

    same(lambda x, t: x + depth(t), (X, (None, (None, None))), (X, None))


def test_irrelevant_changes_do_not_recompile(forward):
    def f(x, o, d):
        return x * o.value + d["k"]

    fast = optimize(forward)(f)
    one = Base(2)
    for number in range(4):
        one.unused = number
        assert torch.equal(fast(X, one, {"k": 1}), X * 2 + 1)
    assert len(fast.__fxstack_capture__.report.replacements) == 1


@pytest.mark.parametrize(
    "one, two",
    [
        (None, Base(1)),
        (Base(1), None),
        (Base(1), 3),
        ("a", Base(1)),
        (X, None),
        (None, X),
        ([], None),
        ((1,), [1]),
        ({}, []),
        (len, None),
        (Base, Child),
        (int, float),
        (torch.float32, torch.float64),
        (range(2), range(3)),
        (slice(1, 2), slice(1, 3)),
        (functools.partial(max, 1), functools.partial(min, 1)),
        (torch.ops.aten.sin.default, torch.ops.aten.cos.default),
        (torch.sin, torch.cos),
        (torch.Tensor.add, torch.Tensor.mul),
        (b"a", b"b"),
        ({1, 2}, {1, 3}),
        (frozenset({1}), {1}),
        (Color.RED, Color.BLUE),
        (float("nan"), 1.0),
    ],
)
def test_kind_of_argument_changes(same, one, two):
    def f(x, a):
        if a is None:
            return x
        if a is torch.sin or a is torch.ops.aten.sin.default:
            return x.sin()
        if a is Base or a is int:
            return x + 10
        if isinstance(a, slice):
            return x[:, a]
        if a in ((torch.float32,), range(2)):
            return x
        return (
            x + 1,
            type(a).__name__,
            a == 1,
            a is len,
            repr(a) if isinstance(a, (int, str, set, tuple)) else 0,
        )

    same(f, (X, one), (X, two), (X, one), (X, two))


def test_identity_of_object_arguments(same):
    a = Base(1)
    same(lambda x, p, q: (x, p is q), (X, a, a), (X, Base(1), Base(1)), (X, a, a))


def test_object_changed_under_another_name(same):
    def f(x, p, q):
        p.value = x
        return q.value

    a = Base(1)
    same(f, (X, Base(1), Base(1)), (X, a, a), (X, Base(1), Base(2)))


class Documented(property):
    """A property with more to say that reads and writes as one."""

    def __init__(self, *functions, text=""):
        super().__init__(*functions)
        self.text = text


class Measured:
    def __init__(self, value):
        self._value = value

    @Documented
    def value(self):
        return self._value * 2

    @value.setter
    def value(self, new):
        self._value = new


def test_properties_of_a_class_made_from_property(whole):
    def f(x):
        measured = Measured(x)
        first = measured.value
        measured.value = x + 1
        return first, measured.value, isinstance(Measured.__dict__["value"], property)

    whole(f, (X,), (X * 2,))


def test_distributions_that_check_their_samples(whole):
    """Their supports are properties of torch's own kind, their parameters lazy ones."""

    def f(logits, x):
        choice = torch.distributions.Categorical(logits=logits)
        mixture = torch.distributions.MixtureSameFamily(choice, torch.distributions.Normal(logits, 1.0))
        return choice.log_prob(x.argmax(-1)), choice.entropy(), choice.probs, mixture.log_prob(x[:, 0])

    whole(f, (X, X), (X * 2, X + 1))
