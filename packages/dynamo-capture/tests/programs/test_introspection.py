"""What ``inspect`` and ``typing`` read of functions: as the function is now, and as the trace has changed it."""

from __future__ import annotations

import inspect
import typing

import pytest
import torch

from dynamo_capture import optimize

X = torch.ones(2)


def made():
    def function(a=1):
        """A text."""

    return function


def wraps(x, function):
    function.__wrapped__ = len
    return x + 1, inspect.unwrap(function) is len, str(inspect.signature(function))


def has_a_signature(x, function):
    function.__signature__ = inspect.Signature()
    return x + 1, str(inspect.signature(function))


def has_annotations(x, function):
    function.__annotations__ = {"a": int}
    return x + 1, typing.get_type_hints(function), function.__annotations__, vars(function)


def has_one_more_annotation(x, function):
    function.__annotations__["a"] = int
    return x + 1, typing.get_type_hints(function)


def has_another_text(x, function):
    function.__doc__ = "Another."
    return x + 1, inspect.getdoc(function)


@pytest.mark.parametrize(
    "program",
    [wraps, has_a_signature, has_annotations, has_one_more_annotation, has_another_text],
    ids=lambda program: program.__name__,
)
def test_what_the_trace_has_changed(same, program):
    def with_a_function(x):
        return program(x, made())

    same(with_a_function, (X,), (X,))


def kept():
    """What is looked at and changed between calls."""


def looked_at(x):
    found = inspect.unwrap(kept).__name__, str(inspect.signature(kept)), inspect.getdoc(kept)
    return x + 1, found, typing.get_type_hints(kept)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("__wrapped__", len),
        ("__signature__", inspect.Signature()),
        ("__doc__", "Changed."),
        ("__annotations__", {"return": int}),
    ],
)
def test_what_changes_between_calls(forward, monkeypatch, name, value):
    def run(program, changed):
        with monkeypatch.context() as patch:
            if changed:
                patch.setattr(kept, name, value, raising=False)
            return program(X)[1:]

    compiled = optimize(forward, fullgraph=True)(looked_at)
    for changed in (False, True, False):
        assert run(compiled, changed) == run(looked_at, changed)
    assert compiled.__fxstack_capture__.report.replacements


@pytest.mark.parametrize("owner", ["function", "class"])
def test_annotations_that_change_in_place_between_calls(forward, monkeypatch, owner):
    class Annotated:
        a: int

    described = Annotated if owner == "class" else made()

    def program(x):
        return x + 1, typing.get_type_hints(described)

    compiled = optimize(forward, fullgraph=True)(program)
    assert compiled(X)[1] == program(X)[1]
    monkeypatch.setitem(described.__annotations__, "b", str)
    assert compiled(X)[1] == program(X)[1]
    assert compiled.__fxstack_capture__.report.replacements
