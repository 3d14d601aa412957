"""Operations whose hooks on saved tensors may raise what the program catches run in Python."""

import contextlib

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from dynamo_capture import optimize

X = torch.ones(4)


class RefusedError(Exception):
    pass


def refuse(x):
    raise RefusedError("packing")


def add_one(x):
    x += 1
    return x


class Swallow:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        return kind is RefusedError


def in_try(x, log):
    with saved_tensors_hooks(refuse, lambda x: x):
        log.append("before")
        try:
            x.sin()
        except RefusedError as error:
            log.append(str(error))
        log.append("after")
    return x + 1


def in_a_block_of_the_program(x, log):
    with saved_tensors_hooks(refuse, lambda x: x):
        with Swallow():
            log.append("before")
            x.sin()
            log.append("never")
        with contextlib.suppress(RefusedError), torch.enable_grad():
            log.append("again")
            x.cos()
            log.append("never")
    return x + 1


def in_a_function(x, log):
    def saves(x):
        return x.exp()

    with saved_tensors_hooks(add_one, lambda x: x):
        try:
            log.append("before")
            saves(x)
        except RuntimeError as error:
            log.append(str(error))
        finally:
            log.append("finally")
    return x + 1


@pytest.mark.parametrize("program", [in_try, in_a_block_of_the_program, in_a_function])
def test_what_a_hook_raises_is_caught_at_its_line(program):
    found = []
    for function in (program, optimize(lambda graph, inputs: graph.forward)(program)):
        log = []
        found.append((function(X.clone().requires_grad_(), log).tolist(), log))
    assert found[0] == found[1]


def _graphs(program, run):
    graphs = []

    def backend(graph_module, example_inputs):
        graphs.append(graph_module)
        return graph_module.forward

    run(optimize(backend)(program), X.clone().requires_grad_())
    return len(graphs)


def guarded(x):
    try:
        with torch.autocast("cpu", enabled=False):
            y = x.sin()
    except RefusedError:
        y = x
    return y.cos()


def in_a_block_of_torchs(x):
    with torch.enable_grad():
        return x.sin().cos()


def under_hooks(function, x):
    with saved_tensors_hooks(lambda x: x, lambda x: x):
        function(x)


def test_only_hooks_of_the_program_in_reach_of_its_handlers_end_the_capture():
    assert _graphs(guarded, lambda function, x: function(x)) == 1
    assert _graphs(guarded, lambda function, x: checkpoint(function, x, use_reentrant=False)) == 1
    assert _graphs(in_a_block_of_torchs, under_hooks) == 1
    assert _graphs(guarded, under_hooks) == 0
