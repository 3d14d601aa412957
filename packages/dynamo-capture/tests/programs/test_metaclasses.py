"""Special methods that classes and enumerations answer with, and what they do on the way."""

import enum

import torch

X = torch.ones(2)
LOG = []


class Told(type):
    def __iter__(cls):
        LOG.append("iter")
        return iter([1, 2])

    def __contains__(cls, item):
        LOG.append("contains")
        return item == 1

    def __len__(cls):
        LOG.append("len")
        return 0


class Asked(metaclass=Told):
    pass


class Colours(enum.IntFlag):
    RED = 1
    GREEN = 2
    BLUE = 4


def test_a_class_is_iterated_asked_and_measured(same):
    def f(x):
        LOG.clear()
        answers = [part for part in Asked], list(Asked), 1 in Asked, len(Asked), bool(Asked), not Asked
        return x + 1, answers, list(LOG)

    same(f, (X,), (X,))


def test_flags_are_iterated(whole):
    def f(x):
        return x + 1, list(Colours.RED | Colours.BLUE), [one.name for one in ~Colours.RED], list(Colours)

    whole(f, (X,))
