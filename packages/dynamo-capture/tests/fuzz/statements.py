"""Runs programs of drawn statements (``writer.py``), as they are and captured, and compares what can be seen.

    python statements.py 2000 --seed 3
    python statements.py 1 --seed 3 --only 117 --show

Every program notes what it comes past, and is run several times on state that it keeps changing; some break their
graphs. Compared are results, notes, the arguments afterwards, exceptions with what caused them and the lines that they
passed, and the gradient.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import traceback
import warnings

import torch
from writer import source

from dynamo_capture import graph_break, optimize  # noqa: F401  # drawn programs break


class Own(Exception):
    """An exception of the program."""


class Block:
    """A context manager that notes how it is left, and swallows what it is told to."""

    def __init__(self, notes, name, swallows=()):
        self.notes, self.name, self.swallows = notes, name, swallows

    def __enter__(self):
        self.notes.append(("enter", self.name))
        return self

    def __exit__(self, kind, value, trace):
        self.notes.append(("exit", self.name, None if kind is None else kind.__name__))
        return kind is not None and issubclass(kind, self.swallows)


class Box:
    """An object of the program."""

    def __init__(self, n):
        self.n = n

    def grow(self, by=1):
        self.n += by
        return self.n


def tick(notes, items):
    """Every round of a loop comes past: one that does not end, or grows without end, is ended."""
    notes.append(".")
    if len(notes) > 60 or len(items) > 60:
        raise Own("too long")


def numbers(n):
    """A generator outside of the program."""
    yield from range(min(n, 4))


def shown(value):
    """What can be seen of a result."""
    if isinstance(value, torch.Tensor):
        return value.shape, value.requires_grad, [f"{v:.5g}" for v in value.detach().flatten().tolist()]
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [shown(item) for item in value]
    if isinstance(value, dict):
        return [(key, shown(item)) for key, item in value.items()]
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, value))
    if isinstance(value, Box):
        return "box", shown(value.n)
    if isinstance(value, BaseException):
        return type(value).__name__, str(value), shown(value.__cause__), shown(value.__context__)
    return repr(value) if isinstance(value, (int, float, str, type(None))) else type(value).__name__


def run(text: str, way) -> list:
    """Everything that can be seen of three calls."""
    scope = dict(globals(), global_table={})
    file = "<drawn>"
    exec(compile(text, file, "exec"), scope)
    program = way(scope["program"])
    items, table, seen, box, kept = [5, 4, 3], {"p": 1, "q": 2}, {1, 2}, Box(2), [torch.ones(2, 3)]
    outcomes = []
    for n in (1, 2, 1):
        torch.set_grad_enabled(True)  # an earlier program may have left a generator in a block
        x = (torch.arange(6.0).reshape(2, 3) + n).requires_grad_()
        notes: list = []
        raised, lines, result = None, [], None
        try:
            result = program(x, n, items, table, seen, box, kept, notes)
        except Exception as error:
            raised = error
            lines = [
                frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file
            ]
        y = result[0] if isinstance(result, tuple) and isinstance(result[0], torch.Tensor) else None
        if y is not None and y.requires_grad:
            y.sum().backward(retain_graph=True)
        outcomes.append(
            [shown(part) for part in (result, notes, items, table, seen, box, kept, raised, lines, x.grad)]
            + [torch.is_grad_enabled(), shown(scope["global_table"])]
        )
        kept = [t.detach() for t in kept[:3]]
        items, table = items[:5], dict(list(table.items())[:5])
    return outcomes


class Mistakes(logging.Handler):
    """Errors of the translator itself."""

    def __init__(self):
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record):
        self.found.append(repr(record.exc_info[1] if record.exc_info else record.getMessage()))


PARTS = (
    "result",
    "notes",
    "items",
    "table",
    "seen",
    "box",
    "kept",
    "raised",
    "lines",
    "gradient",
    "grad mode",
    "globals",
)


def compare(text: str, mistakes: Mistakes) -> str | None:
    """What differs between the two ways of running a program, if anything does."""
    expected = run(text, lambda f: f)
    mistakes.found.clear()
    actual = run(text, optimize(lambda graph, inputs: graph.forward))
    if mistakes.found:
        return f"mistake: {mistakes.found[0]}"
    for call, (wanted, found) in enumerate(zip(expected, actual, strict=True)):
        for name, one, two in zip(PARTS, wanted, found, strict=True):
            if one != two:
                return f"call {call}, {name}:\n  eager    {one}\n  captured {two}"[:900]
    return None


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the number of one program")
    parser.add_argument("--show", action="store_true", help="print the programs that differ")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda unraisable: None
    mistakes = Mistakes()
    logger = logging.getLogger("dynamo_capture")
    logger.addHandler(mistakes)
    logger.propagate = False
    wrong = ran = 0
    for number in range(options.count) if options.only is None else [options.only]:
        text = source(random.Random(f"{options.seed} {number}"))
        try:
            compile(text, "<drawn>", "exec")
        except SyntaxError:
            continue
        ran += 1
        what = compare(text, mistakes)
        if what is not None:
            wrong += 1
            print(f"program {number}: {what}\n{text if options.show else ''}", flush=True)
    print(f"{ran} run, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
