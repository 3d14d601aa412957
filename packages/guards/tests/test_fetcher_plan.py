"""A fetcher that goes by the plan of an earlier call gives what a walk would give, whatever has changed in between."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import torch

import fx_guards
from fx_guards.reference import ReferenceFetcher
from fx_interface.source import AttrSource, InstanceDictSource, ItemSource, LocalSource, Source


class Layer(torch.nn.Module):
    """A module with a parameter, and attributes of other kinds."""

    shared: Any = ("of the class",)

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(2))
        self.pair: Any = (torch.zeros(1), torch.zeros(1))
        self.listed: Any = [torch.zeros(1), torch.zeros(1)]
        self.calls = 0


class Other(Layer):
    """The same, of another class."""


class Net(torch.nn.Module):
    """Layers under names."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Layer(), Layer()


NET, GIVEN = LocalSource("net"), LocalSource("given")


def sources() -> list[Source]:
    """Values of each kind, below an object and below the tuple of arguments."""
    modules = ItemSource(InstanceDictSource(NET), "_modules")
    found: list[Source] = []
    for name in ("first", "second"):
        layer = ItemSource(modules, name)
        own = InstanceDictSource(layer)
        found += [
            ItemSource(ItemSource(own, "_parameters"), "weight"),
            AttrSource(layer, "shared"),
            ItemSource(ItemSource(own, "pair"), 1),
            ItemSource(ItemSource(own, "listed"), -1),
        ]
    return [*found, ItemSource(GIVEN, 0), AttrSource(NET, "first")]


def _module(net: Net, random: Random) -> Any:
    return random.choice((net.first, net.second))


def _new_parameter(net: Net, random: Random) -> None:
    _module(net, random)._parameters["weight"] = torch.nn.Parameter(torch.ones(2))


def _count(net: Net, random: Random) -> None:
    _module(net, random).calls += 1


def _new_tuple(net: Net, random: Random) -> None:
    _module(net, random).pair = (torch.zeros(1), torch.zeros(1))


def _new_item(net: Net, random: Random) -> None:
    _module(net, random).listed[1] = torch.zeros(1)


def _longer_list(net: Net, random: Random) -> None:
    _module(net, random).listed.append(torch.zeros(1))


def _new_layer(net: Net, random: Random) -> None:
    setattr(net, random.choice(("first", "second")), Layer())


def _other_class(net: Net, random: Random) -> None:
    _module(net, random).__class__ = random.choice((Layer, Other))


def _other_dict(net: Net, random: Random) -> None:
    layer = _module(net, random)
    layer.__dict__ = dict(layer.__dict__)


def _hidden(net: Net, random: Random) -> None:
    layer = _module(net, random)
    if layer.__dict__.pop("shared", None) is None:
        layer.shared = "of the object"


def _of_the_class(net: Net, random: Random) -> None:
    Layer.shared = (random.random(),)


def _nothing(net: Net, random: Random) -> None:
    pass


CHANGES = (
    _new_parameter,
    _count,
    _new_tuple,
    _new_item,
    _longer_list,
    _new_layer,
    _other_class,
    _other_dict,
    _hidden,
    _of_the_class,
    *(_nothing,) * 10,
)


@pytest.mark.parametrize("seed", range(20))
def test_changes_between_calls_are_seen(seed: int) -> None:
    random, nets = Random(seed), [Net(), Net()]
    native, reference = fx_guards.build_fetcher(sources()), ReferenceFetcher(sources())
    for _ in range(200):
        net = nets[random.random() < 0.05]
        random.choice(CHANGES)(net, random)
        given = (object(), 1)
        found, expected = native(net, given), reference(net, given)
        assert all(a is b for a, b in zip(found, expected, strict=True))


def test_the_third_call_goes_by_a_plan() -> None:
    net, native = Net(), fx_guards.build_fetcher(sources())
    for _ in range(3):
        native(net, (1,))
    assert native.plan is not None
    net.first.calls += 1
    _new_layer(net, Random(0))
    with pytest.raises(IndexError):
        native(net, ())
    assert native(net, [2])[-2] == 2
    assert native(net, (2,))[-1] is net.first


def test_what_runs_code_of_the_program_has_no_plan() -> None:
    class Computed:
        reads = 0

        @property
        def value(self) -> int:
            self.reads += 1
            return self.reads

    computed = Computed()
    native = fx_guards.build_fetcher([AttrSource(NET, "value"), AttrSource(NET, "reads")])
    assert [native(computed) for _ in range(4)] == [(1, 1), (2, 2), (3, 3), (4, 4)]
    assert native.plan is None
    small = torch.finfo  # a property in C, of a class that cannot change
    reads = fx_guards.build_fetcher([AttrSource(NET, "dtype"), AttrSource(NET, "bits")])
    assert [reads(small(torch.float32)) for _ in range(3)] == [("float32", 32)] * 3


def test_values_are_not_kept_alive() -> None:
    import weakref

    net, native = Net(), fx_guards.build_fetcher(sources())
    for _ in range(4):
        native(net, (1,))
    assert native.plan is not None
    seen = weakref.ref(net.first.weight)
    net.first._parameters["weight"] = torch.nn.Parameter(torch.ones(2))
    assert seen() is None
    assert native(net, (1,))[0] is net.first.weight
