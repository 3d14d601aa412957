"""What calls of builtins may look like: from what they tell, from the table, or by trying."""

from __future__ import annotations

import builtins
import collections
import inspect
import itertools
import math
import operator
import types

import pytest
import torch

from dynamo_capture.semantics.calls import signatures
from dynamo_capture.semantics.calls.signatures import signature_of, takes


@pytest.mark.parametrize(
    ("function", "positional", "keywords", "expected"),
    [
        (len, 1, (), True),
        (len, 2, (), False),
        (sorted, 1, ("key", "reverse"), True),
        (sorted, 1, ("other",), False),
        (range, 0, (), False),
        (range, 3, (), True),
        (range, 4, (), False),
        (set, 1, (), True),
        (set, 0, ("a",), False),
        (dict, 1, ("a",), True),
        (max, 1, ("default",), True),
        (max, 0, (), False),
        (list.append, 2, (), True),
        (list.append, 1, (), False),
        (list.__len__, 2, (), False),
        (set.add, 2, (), True),
        (set.add, 3, (), False),
        (set.union, 5, (), True),
        (dict.pop, 2, (), True),  # an empty dict has no such key, but takes the call
        (dict.pop, 1, (), False),
        (dict.pop, 4, (), False),
        (collections.deque.append, 1, (), False),
        (collections.deque.rotate, 2, (), True),  # takes one, though not of that kind
        (list.__getitem__, 2, (), True),
        (collections.OrderedDict.pop, 2, ("default",), True),
    ],
)
def test_what_is_taken(function, positional, keywords, expected):
    assert takes(function, positional, keywords) is expected


_OWNERS = (builtins, str, dict, list, set, tuple, int, float, bytes, object, type, collections.deque, math, operator,
           torch._C, torch.Tensor, collections.OrderedDict, itertools, "", [], {}, 1)  # fmt: skip
_IN_C = [
    member
    for owner in _OWNERS
    for member in (getattr(owner, name, None) for name in dir(owner))
    if isinstance(member, (types.BuiltinFunctionType, *signatures.METHOD_KINDS))
]


def test_counts_of_arguments_are_those_that_python_parses():
    told = [(function, found) for function in _IN_C if (found := signatures._counts(function)) is not None]
    assert len(told) > 500
    for function, (fewest, most) in told:
        signature = inspect.signature(function)
        for count in range(8):
            try:
                signature.bind(*range(count))
            except TypeError:
                assert not fewest <= count <= most, function
            else:
                assert fewest <= count <= most, function


def test_nothing_is_said_of_what_is_not_known():
    assert signature_of(type(iter([])).__reduce__) is None or takes(type(iter([])).__reduce__, 1, ())
    assert takes(object(), 9, ("anything",))


def test_the_table_agrees_with_what_python_tells():
    for function in signatures._WRITTEN.keys() - {torch.no_grad}:  # what its ``__new__`` takes is not told
        try:
            told = signatures.inspect.signature(function)
        except (TypeError, ValueError):
            continue
        written = signature_of(function)
        kinds = [(p.kind, p.default is p.empty) for p in told.parameters.values()]
        assert [(p.kind, p.default is p.empty) for p in written.parameters.values()] == kinds, function
