"""Objects that are known by their identity and say what operators make of them: they are asked in each call."""

from __future__ import annotations

import enum
import logging
import types

import pytest
import torch

NOTED: list[str] = []


def noting(name, answer):
    def method(self, *others):
        NOTED.append(name)
        return answer

    return method


OWN = {
    **{f"__{prefix}mul__": noting(f"{prefix}mul", 5) for prefix in ("", "r")},
    **{f"__{name}__": noting(name, 3) for name in ("neg", "index", "int", "len")},
    "__iter__": lambda self: iter([1]),
    "__deepcopy__": lambda self, memo: self,
}


class Kind(enum.Enum):
    ONE = "one"
    __mul__, __rmul__, __neg__, __index__, __int__, __len__ = (
        OWN[f"__{name}__"] for name in ("mul", "rmul", "neg", "index", "int", "len")
    )
    __iter__ = OWN["__iter__"]


MAKERS = {
    "enumeration": lambda: Kind.ONE,
    "module": lambda: type("Module", (types.ModuleType,), {**OWN, "__module__": __name__})("kind"),
    "logger": lambda: type("Logger", (logging.Logger,), {**OWN, "__module__": __name__})("kind"),
}
USES = {
    "left of a tensor": lambda x, s: s * x,
    "right of a tensor": lambda x, s: x * s,
    "left of a number": lambda x, s: s * 2,
    "right of a number": lambda x, s: 2 * s,
    "negative": lambda x, s: -s,
    "a dimension": lambda x, s: x.reshape(2, 1, 1, -1).sum(s),
    "a range": lambda x, s: list(range(s)),
    "a number": lambda x, s: int(s),
    "a length": lambda x, s: len(s),
    "a list": lambda x, s: list(s),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_in_each_call(same, make, use):
    known = make()

    def program(x, s):
        y = x + 1
        try:
            return y, use(y, s), [*NOTED]
        except (TypeError, IndexError, RuntimeError) as error:
            return y, type(error).__name__, [*NOTED]
        finally:
            NOTED.clear()

    same(program, *((torch.ones(size), known) for size in (4, 4, 6)))


class Watched(Exception):
    def __getattribute__(self, name):
        NOTED.append(name)
        return super().__getattribute__(name)


def test_an_exception_is_not_asked_for_its_traceback(same):
    def program(x, error):
        y = x + 1
        NOTED.clear()
        try:
            raise error
        except Watched:
            y = y * 2
        return y, [*NOTED]

    same(program, *((torch.ones(size), Watched("a")) for size in (2, 2, 3)))


def test_a_length_that_c_knows_is_no_hint(same):
    class Hinting(dict):
        def __length_hint__(self):
            NOTED.append("hint")
            return 1

    def program(x, own):
        NOTED.clear()
        return x + 1, [*own], list(own), [*NOTED]

    same(program, *((torch.ones(2), Hinting(a=1)) for _ in range(2)))
