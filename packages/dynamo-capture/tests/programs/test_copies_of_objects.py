"""Copies of objects that answer themselves what they have."""

from __future__ import annotations

import collections
import copy
import copyreg
import enum

import pytest
import torch

from dynamo_capture import optimize

X = torch.arange(6.0)


class Asked:
    """Answers itself what it has, as configurations with other names for their settings do."""

    def __init__(self, log=None, **members):
        self.__dict__.update(members, log=log)

    def __getattribute__(self, name):
        log = super().__getattribute__("__dict__").get("log")
        if log is not None:
            log.append(name)
        return super().__getattribute__("width" if name == "hidden" else name)


class Guessing:
    """Has an answer where it has nothing."""

    def __init__(self, answers, log):
        self.answers, self.log = answers, log

    def __getattr__(self, name):
        if "log" in self.__dict__:
            self.log.append(name)
        if name in self.__dict__.get("answers", ()):
            return lambda given: self.__dict__.update(given or {"answers": (), "log": []})
        raise AttributeError(name)


def _copies(x, o, log):
    deep, shallow = copy.deepcopy(o), copy.copy(o)
    found = list(log)
    return x + 1, found, type(deep).__name__, vars(shallow).keys(), deep is o


def test_objects_that_answer_themselves_are_asked_what_python_asks(same):
    def renamed(x):
        o = Asked(width=3)
        made = copy.deepcopy(o)
        made.width = 4
        return x * made.hidden, o.hidden

    same(renamed, (X,), breaks=0)
    for members in ({}, {"width": 3, "inner": [1, {2: 3}]}):

        def asked(x, members=members):
            log = []
            return _copies(x, Asked(log, **members), log)

        same(asked, (X,))


def test_objects_with_an_answer_for_everything(same):
    for answers in ((), ("__setstate__",), ("__deepcopy__",), ("__reduce_ex__",)):

        def guessed(x, answers=answers):
            log = []
            made = Guessing(answers, log)
            try:
                return _copies(x, made, log)
            except TypeError as error:
                return log, str(error)

        same(guessed, (X,))


class Sharing:
    """Copies itself, handing on what has been copied."""

    def __init__(self, shared, noting):
        self.one = self.two = shared
        self.noting = noting

    def __deepcopy__(self, memo):
        copied = Sharing(None, self.noting)
        if self.noting:
            memo[id(self)] = copied
        copied.one = copy.deepcopy(self.one, memo)
        copied.two = copy.deepcopy(self.two, memo=memo)
        copied.seen = id(self) in memo, memo.get(id(self)) is copied
        return copied


@pytest.mark.parametrize("noting", [True, False])
def test_copies_of_what_is_shared_are_shared(same, noting):
    def f(x, o):
        held = [o, o.one, o]
        copied = copy.deepcopy(held)
        first, second, third = copied
        return x + 1, first is third, first.one is first.two, second is first.one, first.seen

    same(f, (X, Sharing([1], noting)), graphs=1, eager=0)


def test_an_object_that_holds_itself(same):
    def f(x, o):
        o.one.append(o)
        copied = copy.deepcopy(o)
        return x + 1, copied.one[-1] is copied, len(copied.two)

    same(f, (X, Sharing([1], True)))


def test_a_memo_of_the_program(same):
    def f(x):
        held, memo = [1], {}
        one, two = copy.deepcopy(held, memo), copy.deepcopy(held, memo)
        return x + 1, one is two, len(memo)

    same(f, (X,))


def test_a_memo_that_is_asked_for_more(same):
    class Counting(Sharing):
        def __deepcopy__(self, memo):
            copied = Counting(copy.deepcopy(self.one, memo), False)
            copied.count = len(memo)
            return copied

    def f(x, o):
        return x + 1, copy.deepcopy(o).count

    same(f, (X, Counting([1], False)))


class _Noting:
    def __init__(self, n, log):
        self.n, self.log = n, log

    def __deepcopy__(self, memo):
        self.log.append(self.n)
        return _Noting(self.n + 1, self.log)


def test_values_of_a_plain_dict_are_copied_before_their_keys(same):
    def f(x, log):
        copied = copy.deepcopy({_Noting(1, log): _Noting(2, log), "z": _Noting(3, log)})
        ordered = copy.deepcopy(collections.OrderedDict([(_Noting(4, log), _Noting(5, log))]))
        return x + 1, len(copied), len(ordered)

    same(f, (X, []))


class _Copied(enum.Enum):
    ONE = 1

    def __copy__(self):
        _CALLS.append("copy")
        return 3

    def __deepcopy__(self, memo):
        _CALLS.append("deepcopy")
        return 4


_CALLS = []


def test_members_of_enumerations_that_copy_themselves():
    """They were copied while the function was captured."""

    def f(x):
        return copy.copy(_Copied.ONE), copy.deepcopy([_Copied.ONE]), x + 1

    captured = optimize(lambda graph, inputs: graph.forward)(f)
    for _ in range(3):
        _CALLS.clear()
        assert captured(X)[:2] == (3, [4])
        assert _CALLS == ["copy", "deepcopy"]


class _Registered:
    def __init__(self, n=0):
        self.n = n


def test_classes_that_are_registered_with_copyreg(same, monkeypatch):
    def f(x, change, log):
        def reduced(one):
            log.append("reduced")
            return _Registered, (100,)

        if change == "register":
            copyreg.pickle(_Registered, reduced)
        found = copy.copy(_Registered(3)).n, copy.deepcopy(_Registered(4)).n
        if change == "register":
            del copyreg.dispatch_table[_Registered]
        return x + 1, found

    same(f, (X, "", []), (X, "register", []), (X, "", []))

    def g(x):
        return x + 1, copy.copy(_Registered(3)).n

    captured = optimize(lambda graph, inputs: graph.forward)(g)
    assert captured(X)[1] == 3
    monkeypatch.setitem(copyreg.dispatch_table, _Registered, lambda one: (_Registered, (100,)))
    assert captured(X)[1] == 100
