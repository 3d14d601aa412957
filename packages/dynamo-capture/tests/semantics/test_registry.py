"""The table of calls."""

from __future__ import annotations

import pytest
import torch

import dynamo_capture.semantics.calls.catalogue  # noqa: F401  # fills the table
from dynamo_capture.semantics.calls.signatures import takes
from dynamo_capture.semantics.registry import HANDLERS, LEAST, handles
from dynamo_capture.semantics.tensors.methods import METHODS
from dynamo_capture.values import Const


def test_a_call_is_declared_once():
    with pytest.raises(ValueError, match="is declared twice"):
        handles(len)(lambda tx, args, kwargs: args[0])
    assert len in HANDLERS


def _index_error(handler, *given):
    """Where a handler raises IndexError; what else it raises does not count."""
    try:
        handler(*given)
    except IndexError as error:
        return error
    except BaseException:  # these arguments are not what the handler is for
        return None
    return None


@pytest.mark.parametrize("count", [0, 1, 2])
def test_no_handler_looks_for_arguments_that_are_not_given(tx, inside, count):
    """An IndexError of a handler is a mistake of its own, and is told as one."""
    failed = [
        (function, error)
        for function, handler in list(HANDLERS.items())
        if count >= LEAST.get(function, 0) and takes(function, count, ())
        if (error := _index_error(handler, inside, [Const(1)] * count, {})) is not None
    ]
    assert not failed


@pytest.mark.parametrize("count", [0, 1, 2])
def test_no_handler_of_a_method_looks_for_arguments_that_are_not_given(tx, tensor, count):
    own = {name: handler for name, handler in METHODS.items() if not name.startswith("__")}
    failed = [n for n, handler in own.items() if _index_error(handler, tx, tensor, [Const(1)] * count, {})]
    assert len(own) > 20
    assert not failed


def test_a_function_in_c_without_a_signature_says_how_many_arguments_it_needs():
    from dynamo_capture import optimize

    def program(x):
        return x + 1, torch.from_numpy()

    captured = optimize(lambda graph, examples: graph.forward)(program)
    with pytest.raises(TypeError, match="exactly one argument"):
        captured(torch.ones(2))
    (_, replacement), *_ = captured.__fxstack_capture__.report.replacements
    assert replacement.stopped.code == "CAP230"


@pytest.fixture
def inside(tx):
    """A trace, as handlers that ask where they are called from want it: within a frame."""
    tx.frames.append(_Frame())
    return tx


class _Frame:
    """Enough of a frame for a handler to ask about."""

    code = test_a_call_is_declared_once.__code__
