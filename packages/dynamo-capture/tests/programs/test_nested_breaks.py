"""Graph breaks in the frames that operators, attributes, blocks and loops run: the frames around them go on compiled."""

import functools

import pytest
import torch

from dynamo_capture import graph_break, optimize

X = torch.arange(4.0) / 4


def broken(x):
    x = x + 1
    graph_break()
    return x * 2


class Thing:
    def __init__(self, x, items=()):
        self.x = x
        self.items = items

    def __add__(self, other):
        return Thing(broken(self.x) + (other.x if isinstance(other, Thing) else other))

    def __sub__(self, other):
        graph_break()
        return NotImplemented

    def __neg__(self):
        return broken(self.x)

    def __abs__(self):
        return broken(self.x)

    def __getitem__(self, index):
        return broken(self.x) + index

    def __setitem__(self, index, value):
        self.x = broken(value) + index

    def __delitem__(self, index):
        self.x = broken(self.x) - index

    def __contains__(self, item):
        graph_break()
        return item

    def __len__(self):
        graph_break()
        return len(self.items)

    def __enter__(self):
        self.x = broken(self.x)
        return self

    def __exit__(self, kind, *rest):
        self.x = broken(self.x)
        return kind is ValueError

    def __eq__(self, other):
        graph_break()
        return other == 3 or NotImplemented

    __hash__ = None

    def __lt__(self, other):
        graph_break()
        return self.x.sum() < 3

    def __iter__(self):
        graph_break()
        return iter(self.items)

    @property
    def twice(self):
        return broken(self.x)

    @twice.setter
    def twice(self, value):
        self.x = broken(value)

    @property
    def missing(self):
        graph_break()
        raise AttributeError("missing")

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return broken(self.x) + len(name)


class Other(Thing):
    def __bool__(self):
        graph_break()
        return not self.items


class Reflected:
    def __rsub__(self, other):
        return other.x * 3


class Steps:
    def __init__(self, x, count):
        self.x, self.count = x, count

    def __iter__(self):
        return self

    def __next__(self):
        if self.count == 0:
            raise StopIteration
        self.count -= 1
        self.x = broken(self.x)
        return self.x


class EndsLate(Steps):
    def __next__(self):
        graph_break()
        return super().__next__()


def addition(x):
    return (Thing(x * 3) + x).x - 1


def reflected(x):
    return Thing(x * 2) - Reflected() + 1


def negation(x):
    return -Thing(x * 2) - abs(Thing(x))


def item(x):
    return Thing(x * 2)[3] - 1


def stored_item(x):
    thing = Thing(x * 2)
    thing[2] = x * 5
    return thing.x - 1


def deleted_item(x):
    thing = Thing(x * 2)
    del thing[2]
    return thing.x - 1


def length(x):
    return x * 3 + len(Thing(x, [1, 2]))


def entering(x):
    y = x * 3
    with Thing(x) as thing:
        y = y + thing.x * 2
    return y - thing.x


def left_by_an_exception(x):
    with Thing(x) as thing:
        thing.x = thing.x * 2
        raise ValueError
    return thing.x - x


def of_property(x):
    return Thing(x * 2).twice - 1


def set_property(x):
    thing = Thing(x * 2)
    thing.twice = x * 3
    return thing.x - 1


def by_getattr(x):
    return Thing(x * 2).hello - 1


def getter_without_value(x):
    return Thing(x * 2).missing - 1


def comparison(x):
    return torch.where(Thing(x * 9) < 3, x, x * 2) * 3


def iteration(x):
    for factor in Thing(x * 2, [1, 2]):
        x = x * factor
    return x


def drawn(x):
    return next(Steps(x * 2, 3)) - 1


def reduced(x):
    return functools.reduce(lambda a, c: broken(a) + c, [1, 2, 3], x * 2) - 1


def over_steps(x):
    y = x
    for step in Steps(x * 2, 3):
        y = y + step
    return y


def summed(x):
    return sum(map(broken, [x * 2, x])) - 1


TWO_GRAPHS = [
    addition, reflected, item, stored_item, deleted_item, length, of_property, set_property,
    by_getattr, comparison, iteration, drawn,
]  # fmt: skip
ONE_MORE_FOR_EACH = [
    (negation, 2),
    (getter_without_value, 2),
    (entering, 2),
    (reduced, 3),
    (over_steps, 3),
    (summed, 2),
]


@pytest.mark.parametrize(("program", "breaks"), [*((one, 1) for one in TWO_GRAPHS), *ONE_MORE_FOR_EACH])
def test_the_rest_of_all_frames_is_one_graph(program, breaks):
    runs = []

    def backend(graph_module, example_inputs):
        def run(*inputs):
            runs.append(None)
            return graph_module.forward(*inputs)

        return run

    fast = optimize(backend)(program)
    for _ in range(3):
        runs.clear()
        assert torch.equal(fast(X), program(X))
    assert len(runs) <= breaks + 1
    assert not fast.__fxstack_capture__.report.eager


def test_the_truth_of_objects(same):
    def program(x, items):
        y = x * 3
        if Thing(x, items):
            y = y + 1
        if not Other(x, items):
            y = y + 2
        while Other(y, items):
            y = y * 2
            items = [*items, 1]
        return y, not Thing(x, items), 1 in Thing(x), 0 not in Thing(x)

    same(program, (X, []), (X, [1]), (X, [1, 2]))


def test_answers_that_python_refuses(same):
    class Wrong:
        def __bool__(self):
            graph_break()
            return 1

        def __len__(self):
            graph_break()
            return -1

        def __iter__(self):
            graph_break()
            return 3

        def __sub__(self, other):
            graph_break()
            return NotImplemented

        def __lt__(self, other):
            graph_break()
            return NotImplemented

    actions = {
        "truth": lambda: not Wrong(),
        "length": lambda: len(Wrong()),
        "loop": lambda: [*iter(Wrong())],
        "difference": lambda: Wrong() - 3,
        "order": lambda: Wrong() < 3,
    }

    def program(x, which):
        x = x * 2
        try:
            actions[which]()
        except (TypeError, ValueError) as error:
            return x + 1, str(error)
        return x

    for which in actions:
        same(program, (X, which), (X, which))


def test_equality_falls_back_on_identity(same):
    def program(x):
        thing = Thing(x)
        return x * 2, thing == 3, thing == 4, thing == thing, thing != Thing(x)

    same(program, (X,), (X,))


def test_loops_that_end_after_a_break(same):
    def program(x, count):
        total = x
        for step in EndsLate(x, count):
            total = total + step
        else:
            total = total * 2
        return total, [broken(item) for item in EndsLate(x, count)]

    same(program, (X, 0), (X, 1), (X, 3))


def test_functions_of_map_that_stop_it(same):
    def program(x, items):
        def until_two(item):
            graph_break()
            if item == 2:
                raise StopIteration
            return x * item

        total = x
        for value in map(until_two, items):
            total = total + value
        return total

    same(program, (X, [1, 2, 3]), (X, [1]), (X, []))


def test_blocks_left_by_exceptions(same):
    same(left_by_an_exception, (X,), (X,))
