"""Runs a small program twice, as it is and captured, and compares everything that can be seen from outside."""

from __future__ import annotations

import contextlib
import copy
import linecache
import logging
import sys
import types

import pytest
import torch

from dynamo_capture import optimize
from fx_interface.conformance.outcomes import differences, observe


def _backend(graph_module, example_inputs):
    return graph_module.forward


def _state(program):
    """What a program that was made for one way of running it holds: a module, an object, or what a function closes over."""
    if not isinstance(program, types.FunctionType):
        return {"program": program}
    return {"closure": program.__closure__, "attributes": vars(program)}


class Same:
    """Compares eager and captured runs; ``capture`` is what the last captured program met."""

    def __init__(self, **defaults):
        self.capture = None
        self.defaults = defaults

    def __call__(self, function, *calls, **options):
        """A program without state of its own: the same function both times, on copies of the arguments."""
        self._compared(function, function, calls, lambda program: None, **options)

    def made(self, make, *calls, **options):
        """A program with state: ``make`` is called once for each way of running it."""
        self._compared(make(), make(), calls, _state, **options)

    def _compared(
        self, plain, captured, calls, watched, graphs=None, breaks=None, eager=None, ignore=(), **options
    ):
        """``ignore``: parts of outcomes that do not count, as ``differences`` has them."""
        fast = optimize(_backend, **{**self.defaults, **options})(captured)
        self.capture = fast.__fxstack_capture__
        raised = False
        file = getattr(getattr(plain, "__code__", None), "co_filename", None)
        for number, call in enumerate(calls):
            outcomes = []
            for program, held in ((plain, plain), (fast, captured)):
                with _grad_mode_kept():
                    outcomes.append(observe(program, *copy.deepcopy(call), also=watched(held), lines_of=file))
            expected, actual = outcomes
            found = differences(expected, actual, ignore={_BELOW_DISPATCH, *ignore})
            assert not found, (number, found)
            raised = raised or expected.raised
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


_BELOW_DISPATCH = "inner version"
"""Torch counts no writes below a class's ``__torch_dispatch__``; a graph of what the class does counts them."""


@contextlib.contextmanager
def _grad_mode_kept():
    """A mode that a program leaves on is part of its outcome, and must not reach the next one."""
    before = torch.is_grad_enabled()
    try:
        yield
    finally:
        torch.set_grad_enabled(before)


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
    told = caplog.get_records("call")  # ``records`` are those of the teardown by now
    mistakes = [record for record in told if record.levelno >= logging.ERROR]
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
def as_in_eager(caplog):
    """Runs a program's text eagerly and captured, each in a module of its own, and compares all that can be seen. The
    compiler must report no mistake of its own.

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
        told = [(record.levelno, record.getMessage()) for record in caplog.records]
        assert not [text for level, text in told if level >= logging.ERROR or "CAP410" in text]

    return run
