"""What a function that is one node of the graph keeps of the tensors that it is given or makes."""

from __future__ import annotations

import collections
import gc

import pytest
import torch

import dynamo_capture
from dynamo_capture import allow_in_graph, optimize
from dynamo_capture.shapes import SpecTensor

TABLE: dict = {"before": 1}
ITEMS: list = ["first"]
QUEUE: collections.deque = collections.deque(["first"], 3)
SET: set = set()
NESTED: dict = {"inner": {}}


class Box:
    tensor = None


class Slots:
    __slots__ = ("tensor",)


BOX, SLOTS = Box(), Slots()


@allow_in_graph
def in_a_table(x):
    TABLE["made"] = x * 2
    TABLE["before"] = x
    return x + 1


@allow_in_graph
def where_it_is_not_yet(x):
    if "kept" not in TABLE:
        TABLE["kept"] = (x * 2, 1)
    return x + TABLE["kept"][0]


@allow_in_graph
def in_a_list(x):
    made = x * 2
    ITEMS.insert(0, made)
    return made


@allow_in_graph
def in_a_queue_and_a_set(x):
    QUEUE.append(x)
    SET.add(x.sin())
    return x * 3


@allow_in_graph
def in_objects(x):
    BOX.tensor = x + 1
    SLOTS.tensor = x + 2
    Box.last = x + 3
    return x * 3


@allow_in_graph
def below(x):
    NESTED["inner"]["made"] = x * 2
    return x * 3


@allow_in_graph
def before_it_raises(x):
    TABLE["made"] = x * 2
    raise ValueError("no")


def closing():
    last = None

    @allow_in_graph
    def keep(x):
        nonlocal last
        last = x * 2
        return x * 3

    return keep, lambda: last


in_a_cell, LAST = closing()


def state():
    return (
        TABLE, ITEMS, QUEUE, sorted(SET, key=str), BOX.tensor, getattr(SLOTS, "tensor", None),
        getattr(Box, "last", None), NESTED, LAST(),
    )  # fmt: skip


def clear():
    TABLE.clear()
    TABLE["before"] = 1
    ITEMS[:] = ["first"]
    QUEUE.clear()
    SET.clear()
    BOX.tensor = None
    NESTED["inner"] = {}


FUNCTIONS = [
    in_a_table, where_it_is_not_yet, in_a_list, in_a_queue_and_a_set, in_objects, below, in_a_cell,
]  # fmt: skip


@pytest.mark.parametrize("kept", FUNCTIONS)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_what_is_kept_is_what_eager_keeps(kept, requires_grad):
    def program(x):
        return kept(x * 2) * 2

    captured = optimize(lambda graph, inputs: graph)(program)
    outcomes = []
    for run in (program, captured):
        clear()
        shown = []
        for number in (1.0, 2.0, 3.0):
            x = torch.full((2,), number, requires_grad=requires_grad)
            result = run(x)
            shown.append((result.tolist(), str(state()), str(torch.utils._pytree.tree_map(_next, state()))))
        outcomes.append(shown)
    clear()
    assert outcomes[0] == outcomes[1]
    assert "SpecTensor" not in str(outcomes[1])


def _next(value):
    return value + 1 if isinstance(value, torch.Tensor) else value


def test_what_is_kept_by_a_function_that_raises():
    def program(x):
        try:
            return before_it_raises(x)
        except ValueError:
            return x * 2

    captured = optimize(lambda graph, inputs: graph)(program)
    clear()
    assert captured(torch.ones(2)).tolist() == [2.0, 2.0]
    assert not any(isinstance(kept, SpecTensor) for kept in TABLE.values())


def test_it_is_reported():
    def program(x):
        return in_a_list(x) * 2

    clear()
    report = str(dynamo_capture.explain(program)(torch.ones(2)))
    assert "CAP257" in report
    assert "in_a_list keeps a tensor" in report
    assert not any(isinstance(item, SpecTensor) for item in ITEMS)


def test_a_function_that_keeps_nothing_is_a_node():
    ran = []

    @allow_in_graph
    def plain(x):
        local = [x * 2]
        ran.append(len(local))
        return local[0].exp() + x

    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph

    x = torch.ones(2, requires_grad=True)
    captured = optimize(backend, fullgraph=True)(lambda x: plain(x).sum())
    captured(x).backward()
    assert any(node.target is plain for node in graphs[0].graph.nodes)
    assert torch.equal(x.grad, 2 * (2 * torch.ones(2)).exp() + 1)


def test_a_composite_kernel_in_python_that_keeps_a_tensor():
    library = torch.library.Library("kept_tensors_test", "DEF")
    library.define("doubled(Tensor x) -> Tensor")

    def kernel(x):
        ITEMS.append(x * 2)
        return x * 2

    library.impl("doubled", kernel, "CompositeImplicitAutograd")
    operator = torch.ops.kept_tensors_test.doubled
    captured = optimize(lambda graph, inputs: graph)(lambda x: operator(x) + 1)
    clear()
    for count in (2, 3):
        assert captured(torch.ones(2)).tolist() == [3.0, 3.0]
        assert len(ITEMS) == count
        assert (ITEMS[-1] + 1).tolist() == [3.0, 3.0]
    clear()


def test_a_holder_that_is_frozen_is_found():
    def f(x):
        return in_a_table(x * 3)

    gc.freeze()
    try:
        x = torch.ones(2)
        assert torch.equal(optimize(lambda module, examples: module.forward)(f)(x), f(x))
        assert type(TABLE["made"]) is torch.Tensor
        assert torch.equal(TABLE["made"], torch.full((2,), 6.0))
    finally:
        gc.unfreeze()
