"""Copies of objects that answer themselves what they have."""

from __future__ import annotations

import copy

import torch

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
