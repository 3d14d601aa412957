"""The text of objects of the program."""

from __future__ import annotations

import pytest

from dynamo_capture.foundation.errors import GraphBreak


class Named:
    def __init__(self, name):
        self.name = name

    def __str__(self):
        return f"<{self.name}>"


class Shown(Named):
    __str__ = object.__str__

    def __repr__(self):
        return f"Shown({self.name!r})"


class Failed(KeyError):
    pass


@pytest.mark.parametrize(
    "program",
    [
        lambda: (str(Named("a")), f"{Named('b')}", f"{Named('c')!s}"),
        lambda: (str(Shown("a")), repr(Shown("b")), f"{Shown('c')!r}"),
        lambda: (
            str(ValueError("a")),
            str(ValueError()),
            repr(ValueError(1, "b")),
            repr(Failed("c")),
            str(Failed("d")),
        ),
    ],
)
def test_it_is_what_python_says(agrees, program):
    agrees(program)


@pytest.mark.parametrize("program", [lambda: format(0, len), lambda: format(Named("a"), 3)])
def test_python_refuses_a_specification_that_is_no_text(agrees, program):
    with pytest.raises(GraphBreak):
        agrees(program)
