"""Programs of comprehensions whose variables have the names of others, and that functions inside share.

From CPython 3.12 on a comprehension is a loop of the function that it stands in: it puts away what its variables' names
held (nothing, a value, a cell, a free variable's cell), and puts that back behind its last round, or where an exception
leaves it. The graph ends in the first iterable, in an element, in a condition, in what a function inside does, in
an iterator or behind the comprehension; functions that were made inside are called later.
"""

from __future__ import annotations

import contextlib
from random import Random

from driver import main

_HEAD = """
import contextlib, re
import torch

ITEMS = [0, 1, 2]
NAMES = ["a", "b"]
LOG = []
v = "global v"
w = "global w"

def brk(value=None):
    print(end="")
    return value

def caught(function):
    try:
        return function()
    except (ValueError, NameError, IndexError) as error:
        return f"{type(error).__name__} {error}"

def fails(value, at):
    if value == at:
        raise ValueError(f"at {at}")
    return value

def broken(items):
    for item in items:
        yield brk(item)

def failing(items, at):
    for item in items:
        yield fails(item, at)

@contextlib.contextmanager
def noted(name):
    LOG.append(name)
    try:
        yield name
    finally:
        LOG.append("left")

def text(value):
    return re.sub("0x[0-9a-f]+", "", repr(value))

def shown(found):
    return [shown(one) for one in found] if isinstance(found, (list, tuple)) else (
        sorted(map(text, found)) if isinstance(found, set) else
        [(key, shown(value)) for key, value in found.items()] if isinstance(found, dict) else
        caught(found) if callable(found) else found)
"""
_HOLDS = ("", "", "{v} = 'first'", "{v} = x + 1", "{v} = 'shared'; kept.append(lambda: {v})", "del {v}")
_ITERABLES = (
    "ITEMS", "range({n})", "x", "brk(ITEMS)", "broken(ITEMS)", "failing(ITEMS, {n})", "[x, x + 1]", "zip(ITEMS, NAMES)",
    "(p for p in ITEMS)", "(brk(p) for p in ITEMS)", "[lambda: 1]", "{{1: 2, 3: 4}}", "x.tolist()", "map(brk, ITEMS)",
    "[{v} for {v} in ITEMS]", "iter(ITEMS)", "[]",
)  # fmt: skip
_ELEMENTS = (
    "{v}", "brk({v})", "lambda: {v}", "lambda: brk({v})", "caught(lambda: {v})", "caught(lambda: brk({v}))",
    "caught(lambda: x[{v}])", "caught(lambda: brk(x)[{v}])", "fails({v}, {n})", "caught(lambda: fails({v}, {n}))",
    "({u} := {v})", "brk({u} := {v})", "x * {n}", "brk(x)", "(lambda {v}: brk({v}))({n})", "lambda {w}={v}: ({v}, {w})",
    "(lambda: ({u} := {v}))()", "(lambda: [{v} for {w} in ITEMS])", "lambda: [{v} for {v} in ITEMS]", "(x.sum(), {v})",
    "fails(brk({v}), {n})", "(lambda: lambda: brk({v}))()", "caught(lambda: {other})",
)  # fmt: skip
_FORMS = ("[{E} {L}]",) * 4 + ("{text({E}) {L}}", "{text({V}): {E} {L}}", "list({E} {L})", "tuple({E} {L})")
_CONDITIONS = (
    "", "", "", " if brk(True)", " if {v} is not None", " if caught(lambda: {v}) != {n}", " if ({u} := {n})",
)  # fmt: skip
_AFTER = (
    "kept.append(caught(lambda: {v}))", "kept.append({v})", "kept.append((brk(x) * 2).sum())", "x = x + 1", "brk()",
    "kept.append([shown(one) for one in kept])", "{v} = {n}", "kept.append(lambda: {v})",
    "kept.append(shown(kept[-1]))",
    "del {v}", "kept.append(sorted(set(locals()) - {{'kept'}}))", "kept.append(x.sum())",
)  # fmt: skip


_AROUND = (
    "{made}", "{made}", "{made}", "with noted('w'):\n    {made}", "class Inside:\n    {v} = 'of a class'\n    {made}",
    "try:\n    {made}\nexcept (ValueError, NameError, IndexError, TypeError) as error:\n    kept.append(str(error))",
    "for {v} in {items}:\n    {made}\n    {left}\n    x = x + 1",
    "def inside():\n    {declared}\n    {made}\n    {after}\ninside()",
)  # fmt: skip
_LEFT = ("pass", "if len(kept) > 3: break", "if len(kept) % 2: continue")
_DECLARED = ("pass", "pass", "global v", "global w", "v = 'inside'", "kept.append(caught(lambda: v))")
_OUTER = """
def made():
    v = 'outer v'; w = 'outer w'; q = 'outer q'
    {}
    return program
program = made()
"""


class _Names:
    """Draws what texts have in braces."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def filled(self, text: str, **given: str) -> str:
        pick = self._random.choice
        v, w = pick(("vw", "vq", "wv", "qv"))
        drawn = {"v": v, "w": w, "u": pick("uuvp"), "n": str(pick(range(4))), "other": pick("vwqu")}
        return text.format(**(drawn | given))

    def comprehension(self, depth: int = 0) -> str:
        pick = self._random.choice
        v, w = pick(("vw", "vq", "wv", "qv"))
        names = {"v": v, "w": w, "u": pick("uuup")}
        element = self.filled(pick(_ELEMENTS), **names)
        if depth < 2 and self._random.random() < 0.25:
            element = self.comprehension(depth + 1)
        target = pick((v, v, v, v, f"({v}, {w})", f"{v}, *{w}"))
        iterable = "zip(ITEMS, NAMES)" if target != v else self.filled(pick(_ITERABLES), **names)
        loops = f"for {target} in {iterable}{self.filled(pick(_CONDITIONS), **names)}"
        if self._random.random() < 0.2:
            more = pick((f"for {w} in ITEMS", f"for {v} in [{v}, {v}]", f"for {w} in [brk({v})]"))
            loops += f" {more}{self.filled(pick(_CONDITIONS), **names)}"
        return pick(_FORMS).replace("{V}", v).replace("{L}", loops).replace("{E}", element)

    def statements(self) -> list[str]:
        pick = self._random.choice
        lines = self.filled(pick(_HOLDS)).splitlines()
        for _ in range(pick(range(1, 4))):
            after = self.filled(pick(_AFTER))
            given = {
                "left": pick(_LEFT),
                "items": pick(("ITEMS", "broken(ITEMS)")),
                "declared": pick(_DECLARED),
            }
            inside = after if "x = " not in after else "pass"
            made = f"kept.append({self.comprehension()})"
            lines += self.filled(pick(_AROUND), made=made, after=inside, **given).splitlines()
            lines.append(after if pick((True, False)) else "pass")
        return lines


def draw(random: Random) -> str:
    """The text of one program. What is no Python (a name that is declared too late) is drawn again."""
    while True:
        lines = ["kept = []", *_Names(random).statements(), "return shown(kept), x.sum()"]
        arguments = random.choice(("x", "x", "x, v=5", "x, *w", "x, q=lambda: 2"))
        if is_inner := random.random() < 0.25:
            lines.insert(0, random.choice(("pass", "nonlocal v", "nonlocal w", "nonlocal q")))
        function = "\n    ".join((f"def program({arguments}):", *lines))
        if is_inner:
            function = _OUTER.format(function.replace("\n", "\n    "))
        calls = ", ".join(f"lambda: (torch.arange({size}.0),)" for size in random.choices((3, 3, 4), k=3))
        text = (
            f"{_HEAD}\n{function}\n\nWATCHED = {{'log': LOG, 'names': lambda: (v, w)}}\nCALLS = [{calls}]\n"
        )
        with contextlib.suppress(SyntaxError):
            compile(text, "<drawn>", "exec")
            return text


if __name__ == "__main__":
    main(draw)
