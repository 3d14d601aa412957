"""Programs about objects: descriptors, special methods, classes and what Python asks of them, exceptions, torch's
``__torch_function__``; drawn at random, eager against compiled.

A program has some classes (``object_classes``), objects of them made outside, inside or given as arguments, and some
statements that read, write, call and compare them. What a statement raises is caught, with its traceback, or leaves.

    python integration_tests/adversaries/objects.py 2000 --seed 1
"""

from __future__ import annotations

import warnings
from random import Random
from typing import Any

from driver import Comparing, main
from object_classes import classes
from object_shapes import Shape
from object_statements import STATEMENTS
from tensor_classes import tensor_program

PRELUDE = '''\
import abc, array, collections, contextlib, contextvars, copy, dataclasses, datetime, decimal, enum, fractions
import functools, inspect, itertools, operator, pathlib, random, re, string, sys, threading
import traceback, types, typing, weakref
import torch

LOG = []


def where(error):
    """The user's lines of a traceback."""
    entries = traceback.extract_tb(error.__traceback__)
    return [(entry.name, entry.lineno) for entry in entries if entry.filename == __file__]


def told(error):
    """How deep the recursion was when Python ended it, which its words depend on, is not the same compiled."""
    return type(error).__name__, str(error) if type(error) is not RecursionError else ""


def mine(value):
    """What other programs use, too, is not changed."""
    assert value.__module__ == __name__

'''


def draw(random: Random) -> str:
    """The text of one program; what Python does not even make classes and arguments of is drawn again."""
    while True:
        text = _program(random)
        space: dict[str, Any] = {}
        try:
            with warnings.catch_warnings(action="ignore"):
                exec(compile(text, "<drawn>", "exec"), space)
            for call in space["CALLS"]:
                call()
        except Exception:
            continue
        return text


def _program(random: Random) -> str:
    if random.random() < 0.2:
        return PRELUDE + tensor_program(random)
    text, shapes = classes(random)
    shape = random.choice(shapes)
    lines, given = _object(random, shape)
    body = [line for _ in range(random.randint(1, 4)) for line in _statement(random, shape)]
    made_outside = "\n".join(lines) if given == "outside" else ""
    made_inside = [*lines] if given == "inside" else ["o = given"] if given == "argument" else []
    program = [
        "def program(x, n, given):",
        "    out = []",
        *(f"    {line}" for line in made_inside),
        *(f"    {line}" for line in body),
        "    return out, x + n",
    ]
    argument = shape.make(random) if given == "argument" else "None"
    calls = ", ".join(
        f"lambda: (torch.arange({size}.) - {shift}, {number}, {argument})"
        for size, shift, number in _values(random)
    )
    watched = "{'log': LOG, 'o': [o]}" if given == "outside" else "{'log': LOG}"
    return "\n".join(
        [PRELUDE, text, made_outside, "", *program, "", f"CALLS = [{calls}]", f"WATCHED = {watched}", ""]
    )


def _values(random: Random) -> list[tuple[int, int, int]]:
    return [
        (random.randint(1, 5), random.randint(0, 3), random.choice([0, 1, 2, 3, 7, -1])) for _ in range(3)
    ]


def _object(random: Random, shape: Shape) -> tuple[list[str], str]:
    """How the object that the statements are about comes to be, and where."""
    made = shape.make(random)
    lines = [f"o = {made}"]
    place = random.choice(["outside", "inside", "argument"])
    if place != "argument" and random.random() < 0.3:
        lines += [line for line in shape.prepared(random) if place == "inside" or not line.startswith("x")]
    return lines, place


def _statement(random: Random, shape: Shape) -> list[str]:
    """One statement, whose exception is caught, in one of several ways, or leaves."""
    template = random.choice(STATEMENTS)
    lines = template(random, shape)
    kind = random.random()
    if kind < 0.5:
        caught = random.choice(
            ["told(e)", "(told(e), where(e))", "(told(e), e.__traceback__ is not None)", "e"]
        )
        return [
            "try:",
            *(f"    {line}" for line in lines),
            "except Exception as e:",
            f"    out.append({caught})",
        ]
    if kind < 0.6:
        return [
            "try:",
            *(f"    {line}" for line in lines),
            "finally:",
            "    out.append(sys.exc_info()[0] is None)",
            "    x = x + 1",
        ]
    return lines


COMPARING = Comparing({"eager": frozenset({"own version"})}, {})
"""Copies that torch makes in Python count writes; version counters are the matter of another adversary."""


if __name__ == "__main__":
    main(draw, COMPARING)
