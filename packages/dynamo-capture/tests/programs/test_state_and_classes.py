"""Torch's state that is asked for and set, and what builtin classes offer beside the usual."""

import collections
import contextlib
import os
import typing

import torch

from dynamo_capture import allow_in_graph, optimize


@contextlib.contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def test_the_default_dtype_is_set_inside(whole):
    def f(x):
        with default_dtype(torch.float64):
            made = torch.ones(2) + torch.arange(2) / 2
        return made, torch.zeros(1), x * 2

    whole(f, (torch.ones(2),), (torch.ones(2),))


def test_the_default_dtype_is_left_changed(whole):
    def f(x):
        torch.set_default_dtype(torch.float64)
        return x + torch.ones(2)

    try:
        whole(f, (torch.ones(2),), (torch.ones(2),))
        assert torch.get_default_dtype() is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_autocast_is_asked_about(whole):
    def f(x):
        with torch.autocast("cpu", torch.bfloat16):
            y = x @ x
            y = y + 1 if torch.is_autocast_cpu_enabled() else y
            y = y.to(torch.get_autocast_dtype("cpu"))
        return y if torch._C._is_any_autocast_enabled() else y.float()

    whole(f, (torch.ones(2, 2),), (torch.ones(2, 2),))


def test_the_dtype_of_autocast_that_is_off_is_guarded(whole):
    def f(x):
        return x.to(torch.get_autocast_dtype("cpu"))

    before = torch.get_autocast_dtype("cpu")
    fast = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(f)
    try:
        for dtype in (torch.bfloat16, torch.float16):
            torch.set_autocast_dtype("cpu", dtype)
            assert fast(torch.ones(2)).dtype is dtype
    finally:
        torch.set_autocast_dtype("cpu", before)


def test_hooks_on_saved_tensors_are_refused_inside(whole):
    def plain(x):
        with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
            y = x * x
        return y, torch._C._autograd._saved_tensors_hooks_get_disabled_error_message()

    whole(plain, (torch.ones(2),))
    with torch.autograd.graph.disable_saved_tensors_hooks("nor outside"):
        whole(plain, (torch.ones(2),))


def test_forward_gradients_are_switched(whole):
    def f(x):
        with torch.autograd.forward_ad._set_fwd_grad_enabled(False):
            inside = torch._C._is_fwd_grad_enabled()
            y = torch.func.jvp(torch.sin, (x,), (x,))
        return y, inside, torch._C._is_fwd_grad_enabled()

    torch.func.jvp(torch.sin, (torch.ones(1),), (torch.ones(1),))  # torch warns of its own first time
    whole(f, (torch.ones(2),))


def test_a_checkpoint_may_ask_whether_it_is_valid(whole):
    whole(lambda x: x + torch.autograd._is_checkpoint_valid(), (torch.ones(2),))


def test_what_is_allowed_in_the_graph_may_give_nothing():
    seen = []

    @allow_in_graph
    def note():
        seen.append(torch.is_grad_enabled())

    def f(x):
        with torch.no_grad():
            note()
        return x + 1

    fast = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(f)
    for _ in range(2):
        seen.clear()
        assert fast(torch.ones(2)).tolist() == [2.0, 2.0]
        assert seen[-1:] == [False]


class Place:
    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return self.path


def test_fspath(whole):
    def f(x, place):
        refused = None
        try:
            os.fspath(3)
        except TypeError as error:
            refused = str(error)
        return x + 1, os.fspath("a/b"), os.fspath(b"c"), os.fspath(place), refused

    whole(f, (torch.ones(1), Place("d")), (torch.ones(1), Place("e")))


def test_subclasses_are_asked_again():
    class Base:
        pass

    class One(Base):
        pass

    def f(x):
        return x + len(Base.__subclasses__()), Base.__subclasses__()

    fast = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(f)
    for number in (1, 2):
        value, found = fast(torch.zeros(1))
        assert value.item() == number
        assert found == Base.__subclasses__()
        found.append(None)
        globals()[f"_kept{number}"] = type("Two", (Base,), {})
    for number in (1, 2):
        del globals()[f"_kept{number}"]


class Items(list):
    pass


def test_new_of_a_list(whole):
    def f(x, cls):
        made = list.__new__(cls)
        made.append(x * 2)
        if cls is Items:
            made.name = "items"
        return made

    whole(f, (torch.ones(1), Items), (torch.ones(1), list))


def test_fromkeys_of_a_defaultdict(whole):
    def f(x):
        made = collections.defaultdict.fromkeys(["a", "b"], x + 1)
        made.setdefault("c", x)
        return made, made.default_factory

    whole(f, (torch.ones(1),))


T = typing.TypeVar("T")


class Pair(typing.NamedTuple, typing.Generic[T]):
    first: T
    second: T

    def total(self):
        return self.first + self.second

    @staticmethod
    def name():
        return "pair"

    @classmethod
    def label(cls):
        return cls.__name__


def test_methods_of_a_generic_named_tuple(whole):
    def f(x):
        pair = Pair(x, x * 2)
        return pair, pair.total(), pair.name(), pair.label()

    whole(f, (torch.ones(1),))
