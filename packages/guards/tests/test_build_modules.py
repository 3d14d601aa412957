"""Guards on modules and tensors: native and reference agree under random changes to a model and its arguments."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import fx_guards
from fx_guards.reference import ReferenceEvaluator, ReferenceFetcher
from fx_interface.source import (
    AttrSource,
    InstanceDictSource,
    ItemSource,
    LocalSource,
    Scope,
    SizeSource,
    Source,
    StrideSource,
)
from fx_interface.symbols import ShapeEnv


class Block(torch.nn.Module):
    """A module with a parameter, a buffer, a child and plain attributes."""

    scale: Any = 2

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.norm = torch.nn.BatchNorm1d(4)
        self.register_buffer("table", torch.zeros(3))
        self.register_parameter("empty", None)
        self.config = {"eps": 1e-5, "sizes": (4, 4)}

    @property
    def width(self) -> int:
        return self.linear.in_features


class Net(torch.nn.Module):
    """Two blocks in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])


def forward(self: Any, x: Any, n: Any) -> None:
    """The function at whose entry the guards are checked."""


NAMES = ("self", "x", "n")
ROOT, X, N = map(LocalSource, NAMES)


def block_guards(source: Source, block: Block) -> list[Any]:
    """What a trace of a block reads, both as a user writes it and through the dictionaries."""
    contents = InstanceDictSource(source)
    linear = AttrSource(source, "linear")
    by_dict = ItemSource(ItemSource(contents, "_modules"), "linear")
    return [
        fx_guards.TypeIs(source, Block),
        fx_guards.EqualsConstant(AttrSource(source, "training"), block.training),
        fx_guards.EqualsConstant(ItemSource(contents, "training"), block.training),
        fx_guards.EqualsConstant(AttrSource(source, "scale"), 2),
        fx_guards.EqualsConstant(AttrSource(source, "width"), 4),
        fx_guards.EqualsConstant(AttrSource(source, "empty"), None),
        fx_guards.EqualsConstant(ItemSource(AttrSource(source, "config"), "sizes"), (4, 4)),
        fx_guards.AttributeAbsent(source, "absent"),
        fx_guards.DictKeys(AttrSource(source, "_modules"), ("linear", "norm")),
        fx_guards.Length(ItemSource(contents, "_forward_hooks"), 0),
        fx_guards.TypeIs(linear, torch.nn.Linear),
        fx_guards.SameObject(linear, by_dict),
        fx_guards.tensor_match(AttrSource(linear, "weight"), block.linear.weight),
        fx_guards.tensor_match(ItemSource(AttrSource(by_dict, "_parameters"), "bias"), block.linear.bias),
        fx_guards.tensor_match(AttrSource(source, "table"), block.table),  # type: ignore[arg-type]
        fx_guards.tensor_match(
            AttrSource(AttrSource(source, "norm"), "running_mean"), block.norm.running_mean
        ),  # type: ignore[arg-type]
    ]


def model_guards(net: Net, x: torch.Tensor) -> list[Any]:
    """Guards of the whole call."""
    table = AttrSource(AttrSource(ROOT, "blocks"), "_modules")
    blocks = [ItemSource(table, str(i)) for i in range(2)]
    facts: list[Any] = [
        fx_guards.TypeIs(ROOT, Net),
        fx_guards.DictKeys(table, ("0", "1")),
        fx_guards.global_state(),
    ]
    for source, block in zip(blocks, net.blocks, strict=True):
        facts += block_guards(source, block)  # type: ignore[arg-type]
    weights = [AttrSource(AttrSource(b, "linear"), "weight") for b in blocks]
    facts.append(fx_guards.DistinctObjects(weights[0], (weights[1], X)))
    facts.append(fx_guards.tensor_match(X, x, dynamic_sizes={0}))
    env = ShapeEnv()
    batch = env.create_symbol(x.shape[0], SizeSource(X, 0))
    env.create_symbol(7, N)
    env.specialize(batch % 2)
    shapes = fx_guards.shape_relations(env)
    assert shapes is not None
    return [*facts, shapes]


def changes(net: Net, slots: dict[str, Any]) -> list[Any]:
    """Pairs of a change and its opposite."""
    block: Any = net.blocks[0]
    linear = block.linear
    parameter, twin = linear.weight, torch.nn.Parameter(torch.zeros(4, 4))
    x = slots["x"]

    def both(on: Any, off: Any) -> Any:
        return on, off

    def slot(name: str, value: Any) -> Any:
        old = slots[name]
        return both(lambda: slots.__setitem__(name, value), lambda: slots.__setitem__(name, old))

    return [
        both(lambda: net.eval(), lambda: net.train()),
        both(lambda: setattr(linear, "weight", twin), lambda: setattr(linear, "weight", parameter)),
        both(lambda: parameter.requires_grad_(False), lambda: parameter.requires_grad_(True)),
        both(
            lambda: setattr(block.table, "data", torch.zeros(5)),
            lambda: setattr(block.table, "data", torch.zeros(3)),
        ),
        both(lambda: block.table.resize_(2), lambda: block.table.resize_(3)),
        both(lambda: setattr(block, "absent", 1), lambda: vars(block).pop("absent", None)),
        both(lambda: setattr(block, "scale", 3), lambda: vars(block).pop("scale", None)),
        both(lambda: setattr(Block, "scale", 3), lambda: setattr(Block, "scale", 2)),
        both(lambda: setattr(linear, "in_features", 5), lambda: setattr(linear, "in_features", 4)),
        both(lambda: block.config.update(sizes=(4, 5)), lambda: block.config.update(sizes=(4, 4))),
        both(lambda: block.config.update(other=1), lambda: block.config.pop("other", None)),
        both(lambda: setattr(block, "__class__", Net), lambda: setattr(block, "__class__", Block)),
        both(lambda: block._modules.update(new=None), lambda: block._modules.pop("new", None)),
        both(lambda: setattr(block, "_counter", 1), lambda: vars(block).pop("_counter", None)),
        both(lambda: net.blocks._modules.pop("1", None), lambda: net.blocks.append(Block())),
        both(lambda: torch.set_grad_enabled(False), lambda: torch.set_grad_enabled(True)),
        both(lambda: torch.set_default_dtype(torch.float64), lambda: torch.set_default_dtype(torch.float32)),
        slot("x", torch.zeros(6, 4)),
        slot("x", torch.zeros(5, 4)),
        slot("x", torch.zeros(4, 6).t()),
        slot("x", torch.zeros(6, 4, dtype=torch.float64)),
        slot("x", parameter),
        slot("x", x[0]),
        slot("x", None),
        slot("n", 1),
        slot("n", 2**70),
        slot("n", True),
        slot("n", 7.0),
    ]


@pytest.fixture(autouse=True)
def _restore() -> Any:
    yield
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    Block.scale = 2


@settings(max_examples=120, deadline=None)
@given(st.randoms(use_true_random=False))
def test_native_agrees_with_reference_on_a_model(random: Random) -> None:
    net, slots = Net(), {"x": torch.zeros(8, 4), "n": 7}
    facts = model_guards(net, slots["x"])  # type: ignore[arg-type]
    if random.random() < 0.5:
        facts = random.sample(facts, random.randrange(1, len(facts) + 1))
    native, reference = fx_guards.build(facts, varnames=NAMES), ReferenceEvaluator(facts, NAMES)
    undo: list[Any] = []
    possible = changes(net, slots)
    try:
        for _ in range(14):
            for _ in range(random.randrange(1, 4)):
                scope = Scope({"self": net, **slots}, {})
                expected = reference.check(scope)
                assert native.check_call(forward, net, slots["x"], slots["n"]) == expected, (
                    fx_guards.first_failure(facts, scope),
                    fx_guards.GuardSet(facts).guards[native.failed],
                )
                assert native.check(scope) == expected
            if undo and random.random() < 0.6:
                undo.pop()()
            else:
                on, off = random.choice(possible)
                on()
                undo.append(off)
    finally:
        for off in reversed(undo):
            off()


@pytest.mark.parametrize("which", range(28))
def test_each_change_is_seen_and_its_opposite_restores(which: int) -> None:
    net, slots = Net(), {"x": torch.zeros(8, 4), "n": 7}
    facts = model_guards(net, slots["x"])  # type: ignore[arg-type]
    native, reference = fx_guards.build(facts, varnames=NAMES), ReferenceEvaluator(facts, NAMES)
    on, off = changes(net, slots)[which]
    for step in (lambda: None, on, off):
        step()
        expected = reference.check(Scope({"self": net, **slots}, {}))
        for _ in range(4):
            assert native.check_call(forward, net, slots["x"], slots["n"]) == expected


def test_a_dynamic_size_holds_for_other_sizes_and_its_relation_is_checked() -> None:
    net, x = Net(), torch.zeros(8, 4)
    native = fx_guards.build(model_guards(net, x), varnames=NAMES)
    for _ in range(3):
        assert native.check_call(forward, net, torch.zeros(6, 4), 9)
        assert not native.check_call(forward, net, torch.zeros(7, 4), 9)


def test_size_and_stride_of_an_unreadable_tensor_are_read_in_python() -> None:
    class Wrapped(torch.Tensor):
        pass

    env = ShapeEnv()
    env.create_symbol(3, SizeSource(X, 0))
    env.create_symbol(2, StrideSource(X, -2))
    facts = [fx_guards.shape_relations(env)]
    native = fx_guards.build(facts, varnames=NAMES)  # type: ignore[arg-type]
    for tensor in (torch.zeros(3, 2), torch.zeros(3, 2).as_subclass(Wrapped)):
        assert native.check_call(forward, None, tensor, 1)
    assert not native.check_call(forward, None, torch.zeros(1, 2), 1)
    assert not native.check_call(forward, None, torch.zeros(()), 1)
    assert not native.check_call(forward, None, 3, 1)


def test_fetcher_reads_parameters_both_ways() -> None:
    net = Net()
    table = AttrSource(AttrSource(ROOT, "blocks"), "_modules")
    sources: list[Source] = []
    for index in range(2):
        linear = AttrSource(ItemSource(table, str(index)), "linear")
        sources += [
            AttrSource(linear, "weight"),
            ItemSource(AttrSource(linear, "_parameters"), "bias"),
            linear,
        ]
    fetcher, reference = fx_guards.build_fetcher(sources), ReferenceFetcher(sources)
    assert fetcher.roots == reference.roots == (ROOT,)
    for _ in range(3):
        assert all(a is b for a, b in zip(fetcher(net), reference(net), strict=True))
    linear_: Any = net.blocks[1].linear
    linear_.weight = torch.nn.Parameter(torch.ones(4, 4))
    assert fetcher(net)[3] is linear_.weight
    del linear_.weight
    with pytest.raises(AttributeError, match="weight"):
        fetcher(net)
