"""Runs a small program twice, as it is and captured, and compares everything that can be seen from outside."""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import io
import linecache
import logging
import math
import random
import sys
import traceback
import types

import numpy
import pytest
import torch

from dynamo_capture import optimize
from fx_interface.conformance.outcomes import differences, observe


def _backend(graph_module, example_inputs):
    return graph_module.forward


def equal(one, two):
    """Whether two results are the same: types, values (nan equals nan), dtypes, shapes and items."""
    if hasattr(type(one), "__tensor_flatten__"):
        return type(one) is type(two) and _form(one) == _form(two) and equal(_inner(one), _inner(two))
    if isinstance(one, torch.Tensor):
        return (
            isinstance(two, torch.Tensor)
            and type(one) is type(two)
            and one.dtype == two.dtype
            and one.shape == two.shape
            and one.requires_grad == two.requires_grad
            and torch.allclose(one.detach().double(), two.detach().double(), equal_nan=True)
        )
    if type(one) is not type(two) and type(one).__qualname__ != type(two).__qualname__:
        return False
    if isinstance(one, numpy.ndarray):
        return one.dtype == two.dtype and numpy.array_equal(one, two)
    if isinstance(one, float):
        return (math.isnan(one) and math.isnan(two)) or (
            one == two and math.copysign(1, one) == math.copysign(1, two)
        )
    if isinstance(one, (list, tuple, collections.deque)):
        return len(one) == len(two) and all(equal(a, b) for a, b in zip(one, two, strict=True))
    if isinstance(one, (dict, types.MappingProxyType)):
        return list(map(str, one)) == list(map(str, two)) and all(
            equal(a, b) for a, b in zip(one.values(), two.values(), strict=True)
        )
    if isinstance(one, BaseException):
        return equal(one.args, two.args)
    if isinstance(one, types.MethodType):
        return one.__func__ is two.__func__
    if isinstance(one, type):
        return one.__qualname__ == two.__qualname__
    if dataclasses.is_dataclass(one) or (type(one).__eq__ is object.__eq__ and hasattr(one, "__dict__")):
        if callable(one):
            return True
        return equal(vars(one), vars(two))
    return type(one).__eq__ is object.__eq__ or bool(one == two)


def _form(wrapper):
    return wrapper.shape, wrapper.stride(), wrapper.dtype, wrapper.requires_grad, wrapper.is_leaf


def _inner(wrapper):
    names, context = wrapper.__tensor_flatten__()
    return [[name, getattr(wrapper, name)] for name in names], context


def _tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in _tensors(item)]
    if isinstance(value, dict):
        return [t for item in value.values() for t in _tensors(item)]
    if isinstance(value, torch.nn.Module):
        return [*value.parameters(), *value.buffers()]
    return []


def _chain(error):
    """An exception with what caused it and what it came up in."""
    if error is None:
        return None
    return type(error).__qualname__, str(error), _chain(error.__cause__), _chain(error.__context__)


def _run(function, args, kwargs):
    out = io.StringIO()
    result, error = None, None
    torch.manual_seed(0)
    random.seed(0)
    with contextlib.redirect_stdout(out):
        try:
            result = function(*args, **kwargs)
        except Exception as raised:
            error = raised
            traceback.clear_frames(raised.__traceback__)  # what a generator of torch's has entered is left
    dice = torch.get_rng_state().tolist(), random.getstate()
    differentiable = [t for t in _tensors(result) if t.requires_grad and t.is_floating_point()]
    if differentiable:
        sum(t.sum() for t in differentiable).backward(retain_graph=True)
    grads = [t.grad for t in _tensors(args) if t.is_leaf]
    return result, error, out.getvalue(), grads, dice


class Same:
    """Compares eager and captured runs; ``capture`` is what the last captured program met."""

    def __init__(self, **defaults):
        self.capture = None
        self.defaults = defaults

    def __call__(self, function, *calls, **options):
        """A program without state of its own: the same function both times, on copies of the arguments."""
        self.made(lambda: function, *calls, **options)

    def made(self, make, *calls, graphs=None, breaks=None, eager=None, **options):
        """A program with state: ``make`` is called once for each way of running it."""
        plain, fast = make(), optimize(_backend, **{**self.defaults, **options})(make())
        self.capture = fast.__fxstack_capture__
        raised = False
        for number, call in enumerate(calls):
            first, second = copy.deepcopy(call), copy.deepcopy(call)
            grad_mode = torch.is_grad_enabled()
            expected = _run(plain, first, {})
            assert torch.is_grad_enabled() == grad_mode
            raised = raised or expected[1] is not None
            actual = _run(fast, second, {})
            assert torch.is_grad_enabled() == grad_mode, "grad mode leaks"
            assert type(expected[1]) is type(actual[1]) or (
                type(expected[1]).__qualname__ == type(actual[1]).__qualname__
            ), (number, expected[1], actual[1])
            assert equal(expected[0], actual[0]), (number, "result", expected[0], actual[0])
            assert _chain(expected[1]) == _chain(actual[1]), (number, _chain(expected[1]), _chain(actual[1]))
            assert expected[2] == actual[2], (number, "output", expected[2], actual[2])
            assert equal(expected[3], actual[3]), (number, "gradients", expected[3], actual[3])
            assert equal(first, second), (number, "arguments", first, second)
            assert expected[4] == actual[4], (number, "random state")
        report = self.capture.report
        if self.defaults.get("fullgraph"):
            code = getattr(plain, "__code__", None)
            refused = [
                why
                for where, why in report.eager
                if (where is code or code is None) and not (raised and why.startswith("the program raises"))
            ]
            assert not refused, refused
        if graphs is not None:
            assert len(report.replacements) == graphs, [str(r.stopped) for _, r in report.replacements]
        if eager is not None:
            assert len(report.eager) == eager, report.eager
        if breaks is not None:
            found = sum(r.stopped is not None for _, r in report.replacements)
            assert found == breaks, [str(r.stopped) for _, r in report.replacements]


@pytest.fixture
def same(caplog):
    """A ``Same``; fails if the translator made an error of its own."""
    yield from _watched(Same(), caplog)


@pytest.fixture
def whole(caplog):
    """A ``Same`` for programs that must be captured without a graph break."""
    yield from _watched(Same(fullgraph=True), caplog)


def _watched(made, caplog):
    torch.manual_seed(0)
    with caplog.at_level(logging.ERROR, logger="dynamo_capture"):
        yield made
    mistakes = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert not mistakes, "\n".join((r.getMessage() + "\n" + (r.exc_text or "")) for r in mistakes)


@pytest.fixture
def forward():
    """The backend that runs a graph as it is."""
    return _backend


@pytest.fixture
def seeded():
    """Makes a program's state from the same random numbers for each way of running it."""

    def seed(make):
        def build():
            torch.manual_seed(1)
            return make()

        return build

    return seed


@pytest.fixture
def unknown():
    """Something that no graph expresses."""

    def read(value):
        return value.tolist() if isinstance(value, torch.Tensor) else value

    return read


@pytest.fixture
def noted():
    """A context manager made of a generator, which writes down that it is entered and left."""

    @contextlib.contextmanager
    def enter(log):
        log.append("in")
        try:
            yield len(log)
        finally:
            log.append("out")

    return enter


class _Recorder:
    def __init__(self, swallow=False):
        self.log = []
        self.swallow = swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, value, trace):
        self.log.append(None if kind is None else kind.__name__)
        return self.swallow


@pytest.fixture
def recorder():
    """A class of context managers that write down what they see, and swallow exceptions if told to."""
    return _Recorder


@pytest.fixture
def as_in_eager():
    """Runs a program's text eagerly and captured, each in a module of its own, and compares all that can be seen.

    The text defines ``program``, ``CALLS`` (functions that make the arguments of each call) and perhaps ``WATCHED``.
    """

    def run(text):
        name = "<program>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        modules = []
        for _ in range(2):
            module = types.ModuleType("program_of_test")
            sys.modules[module.__name__] = module
            exec(compile(text, name, "exec"), module.__dict__)
            modules.append(module)
        plain, fast = modules
        captured = optimize(_backend)(fast.program)
        for one, two in zip(plain.CALLS, fast.CALLS, strict=True):
            watched = [getattr(module, "WATCHED", None) for module in modules]
            expected = observe(plain.program, *one(), also=watched[0], lines_of=name)
            actual = observe(captured, *two(), also=watched[1], lines_of=name)
            assert not differences(expected, actual)

    return run
