"""Objects of the standard library, and of torch's, that programs hand in and call in rarer ways."""

import functools
import types

import torch
from torch.fx.immutable_collections import immutable_list

from dynamo_capture import optimize

X = torch.arange(3.0)


def test_views_of_dictionaries_are_arguments():
    def f(x, d, keys, items, values):
        if "c" in keys:
            x = x + d["c"]
        for name in keys:
            x = x * d[name]
        d["z"] = 9
        return x, len(items), list(items), sum(values), keys

    fast = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(f)
    for content in ({"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 2}):
        outcomes = []
        for run in (f, fast):
            d = dict(content)
            given = d.keys()
            found = run(X, d, given, d.items(), d.values())
            assert found[-1] is given
            outcomes.append((found[0].tolist(), *found[1:4], list(found[4]), d))
        assert outcomes[0] == outcomes[1]


def test_a_property_over_a_partial_function(whole):
    def shifted(self, *, delta):
        return self.flag + delta

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.flag = 1

        moved = property(functools.partial(shifted, delta=2))

        def forward(self, x):
            return x + self.moved

    whole.made(Module, (X,), (X,))


def test_init_of_a_frozenset(whole):
    def f(x):
        made = frozenset({1, 2})
        frozenset.__init__(made, [3])
        made.__init__()
        return x + len(made)

    whole(f, (X,))


def test_an_alias_of_a_builtin_class(whole):
    def f(x):
        made = dict[str, torch.Tensor](a=x)
        made["b"] = x + 1
        return made, list[int]((1, 2))

    whole(f, (X,))


def test_a_slot_is_read_by_its_descriptor(whole):
    shape, space = torch.Tensor.shape, type.__dict__["__dict__"]

    class Holder:
        __slots__ = ("value",)
        number = 3

        def __init__(self):
            self.value = 2

    def f(x):
        held = Holder.value.__get__(Holder())
        return x + len(space.__get__(Holder)) + space.__get__(Holder)["number"], shape.__get__(x), held

    whole(f, (X,), (X[:2],))


def test_containers_are_mapped_by_fx(whole):
    def f(x):
        given = (x, [x + 1, {"a": x + 2}], slice(0, 3), types.SimpleNamespace)
        return torch.fx.node.map_aggregate(
            given, lambda part: part * 2 if isinstance(part, torch.Tensor) else part
        )

    whole(f, (X,))


def test_a_list_that_cannot_change(whole):
    def f(x, given):
        made = immutable_list(given)
        try:
            made.append(x)
        except TypeError as error:
            return made[0] * 2, type(error).__name__
        return None

    whole(f, (X, [X, X + 1]))


def test_the_id_of_a_tensor_that_an_object_keeps():
    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.other = torch.ones(3), torch.zeros(3)

        def forward(self, x, wanted):
            return x * (self.one if id(self.one) == wanted else self.other)

    module = Module()
    fast = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(module)
    assert fast(X, id(module.one)).tolist() == X.tolist()
    assert fast(X, id(module.other)).tolist() == [0, 0, 0]
    module.one = torch.ones(3) * 2
    assert fast(X, id(module.one)).tolist() == (X * 2).tolist()


def test_a_function_that_gives_itself():
    def f(x):
        def own(n=1):
            return own if n == 1 else own(n - 1)

        return x + 1, own() is own, own

    x, is_same, own = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(f)(X)
    assert x.tolist() == (X + 1).tolist()
    assert is_same
    assert own(3) is own


def test_functions_that_call_each_other():
    def f(x):
        def even(n):
            return n == 0 or odd(n - 1)

        def odd(n):
            return n != 0 and even(n - 1)

        return x + 1, [odd], even

    _, (odd,), even = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(f)(X)
    assert (odd(3), even(3), even(4)) == (True, False, True)
    assert even.__closure__[0].cell_contents is odd
    assert odd.__closure__[0].cell_contents is even
