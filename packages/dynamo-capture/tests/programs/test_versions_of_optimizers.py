"""Versions of a function belong to the optimizer that made them: neither others nor Python's collector change them."""

from __future__ import annotations

import gc
import logging
from typing import Any

import torch

from dynamo_capture import optimize
from dynamo_capture.driver.optimizer import run_graph

X = torch.ones(3)


class _Counted:
    def __init__(self) -> None:
        self.graphs = 0

    def __call__(self, graph_module: Any, example_inputs: Any) -> Any:
        self.graphs += 1
        return run_graph(graph_module, example_inputs)


def test_an_optimizer_that_is_collected_late_takes_its_own_versions_only():
    def function(x):
        return x + 1

    first, second = _Counted(), _Counted()
    gone = optimize(first)(function)
    gone.cycle = gone
    gone(X)
    left = optimize(second)(function)
    left(X)
    del gone
    gc.collect()
    left(X)
    assert (first.graphs, second.graphs) == (1, 1)


def test_resetting_one_optimizer_leaves_the_others():
    def function(x):
        return x + 1

    backends = [_Counted(), _Counted()]
    optimizers = [optimize(backend) for backend in backends]
    compiled = [optimizer(function) for optimizer in optimizers]
    for one in compiled:
        one(X)
    optimizers[0].reset()
    for one in compiled:
        one(X)
    assert [backend.graphs for backend in backends] == [2, 1]


def test_many_optimizers_keep_their_versions():
    def function(x):
        return x * 3

    backend = _Counted()
    compiled = [optimize(backend)(function) for _ in range(70)]
    for one in compiled * 2:
        assert torch.equal(one(X), X * 3)
    assert backend.graphs == 70


def test_versions_for_objects_that_are_gone_do_not_use_up_the_limit(caplog):
    class Marker:
        pass

    def function(x, marker):
        return x + (id(marker) == number)

    backend = _Counted()
    compiled = optimize(backend, recompile_limit=2)(function)
    with caplog.at_level(logging.WARNING, "dynamo_capture"):
        for _ in range(6):
            marker = Marker()
            number = id(marker)
            for _ in range(6):  # objects of one call each make the code pause
                assert torch.equal(compiled(X, marker), X + 1)
    assert backend.graphs == 6
    assert "uncompiled" not in caplog.text
