"""Statements: loops over data, graph breaks at every kind of place, modes switched around them, effects of every kind.

A program has a few functions that call each other (plain ones, generators, closures, methods, decorated ones) made of
statements that ``statement_kinds`` draws. What they do to Python's objects is kept in ``WATCHED`` and compared after
each of three calls, which have other sizes and values.
"""

from __future__ import annotations

from random import Random

from driver import Comparing, main
from statement_classes import HEADER as CLASSES_HEADER
from statement_forms import FORMS
from statement_forms import HEADER as FORMS_HEADER
from statement_kinds import STATEMENTS
from statement_places import HEADER as PLACES_HEADER
from statement_places import PLACES
from statement_scope import Scope
from statement_structures import STRUCTURES

_HEADER = """\
import collections, contextlib, functools, itertools
import torch

class Box:
    def __init__(self, n):
        self.n, self.items = n, []
    def grow(self, by=1):
        self.n += by
        return self.n

class Own(Exception):
    pass

@contextlib.contextmanager
def noted(name):
    LOG.append(("in", name))
    try:
        yield name
    finally:
        LOG.append(("out", name))

class Swallows:
    def __init__(self, *kinds):
        self.kinds = kinds
    def __enter__(self):
        LOG.append("entered")
        return self
    def __exit__(self, kind, value, trace):
        LOG.append(kind and kind.__name__)
        return kind is not None and issubclass(kind, self.kinds)

torch.manual_seed(7)
LOG, TABLE, MEMBERS, BOX = [], {}, set(), Box(1)
COUNTS, QUEUE = collections.Counter(), collections.deque(maxlen=5)
IT, COUNTING = iter(range(100)), itertools.count()
W = torch.nn.Parameter(torch.randn(3, 3))
B = torch.zeros(3)
TOTAL = 0

def brk(value=None):
    print(end="")
    return value

def tick(limit=80):
    LOG.append(".")
    if len(LOG) > 400:
        raise Own("too long")
    return len(LOG) % 3
"""

_FOOTER = """
def call(rows, seed, grad):
    def made():
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(rows, 3, generator=generator).requires_grad_(grad)
        q = torch.randint(0, 3, (rows + 2,), generator=generator)
        return x, q, [1, seed, 3]
    return made

CALLS = [{calls}]
WATCHED = {{"log": LOG, "table": TABLE, "members": MEMBERS, "box": BOX, "counts": COUNTS, "queue": QUEUE,
           "w": W, "b": B, "net": NET, "root": ROOT, "heap": HEAP, "sorted": SORTED, "out": OUT, "empty": EMPTY}}
"""

_KINDS, _WEIGHTS = zip(*STATEMENTS, *FORMS, *PLACES, *STRUCTURES, strict=True)


def draw(random: Random) -> str:
    """The text of one program."""
    parts = [_HEADER, FORMS_HEADER, PLACES_HEADER, CLASSES_HEADER]
    functions: list[str] = []
    generators: list[str] = []
    for number in range(random.randint(0, 3)):
        if random.random() < 0.35:
            parts.append(_generator(random, f"g{number}", functions, generators))
            generators.append(f"g{number}")
        else:
            parts.append(_function(random, f"h{number}", functions, generators))
            functions.append(f"h{number}")
    scope = Scope(random, functions, generators, depth=0, budget=random.randint(3, 9))
    scope.tensors, scope.indices, scope.lists = ["x"], ["q"], ["given"]
    body = [*_global(random), "t = x * 1.5", *_block(scope.named("t")), *_result(scope)]
    parts.append(_text("def program(x, q, given):", body))
    calls = ", ".join(
        f"call({random.randint(1, 4)}, {random.randint(0, 99)}, {random.random() < 0.6})" for _ in range(3)
    )
    return "\n".join(parts) + _FOOTER.format(calls=calls)


def _global(random: Random) -> list[str]:
    return ["global TOTAL"]


def _function(random: Random, name: str, functions: list[str], generators: list[str]) -> str:
    scope = Scope(random, functions, generators, depth=1, budget=random.randint(1, 4))
    scope.tensors, scope.numbers, scope.indices, scope.is_called = ["t"], ["k"], ["q"], True
    body = [*_global(random), *_block(scope)]
    body.append(f"return {scope.tensor()}")
    head = random.choice(
        ["", "", "", "@torch.no_grad()\n", "@torch.enable_grad()\n", "@torch.inference_mode(False)\n"]
    )
    return head + _text(f"def {name}(t, k, q):", body)


def _generator(random: Random, name: str, functions: list[str], generators: list[str]) -> str:
    scope = Scope(random, functions, [], depth=1, budget=random.randint(0, 2))
    scope.tensors, scope.numbers, scope.indices, scope.is_called = ["t"], ["k"], ["q"], True
    before = [*_global(random), *_block(scope)]
    loop = random.choice(["for j in range(k % 3 + 1):", "for j, p in enumerate(q.tolist()[:3]):"])
    inner = Scope(random, functions, [], depth=2, budget=random.randint(0, 2), parent=scope)
    inner.numbers.append("j")
    rounds = [*_block(inner), f"yield {inner.number()}, {inner.tensor()}"]
    body = [*before, loop, *_indented(rounds)]
    if random.random() < 0.3:
        body = ["try:", *_indented(body), "finally:", f"    LOG.append({name!r})"]
        body = ["global TOTAL", *[line for line in body if line.strip() != "global TOTAL"]]
    return _text(f"def {name}(t, k, q):", body)


def _block(scope: Scope) -> list[str]:
    lines: list[str] = []
    while scope.budget > 0:
        scope.budget -= 1
        statement = scope.random.choices(_KINDS, _WEIGHTS)[0]
        lines += statement(scope, _block)
    return lines or ["pass"]


def _result(scope: Scope) -> list[str]:
    found = [*scope.tensors[-3:], *scope.numbers[-2:], *scope.lists[-2:], "TOTAL"]
    return [f"return {', '.join(found)}"]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _text(head: str, body: list[str]) -> str:
    return "\n".join([head, *_indented(body), ""])


_VERSIONS = frozenset({"version", "own version", "refused backward"})
"""A graph that is compiled ahead of time makes a new tensor with what was written into it, and writes once into others;
gradients are added up before they are accumulated, in an order of the graph's own. What eager refuses in a backward, as
a saved tensor was overwritten, may pass."""


if __name__ == "__main__":
    exactly = Comparing.exactly()
    ignored = {"aot_eager": _VERSIONS, "inductor": _VERSIONS}
    main(draw, Comparing(ignored, exactly.tolerances, gradients={"aot_eager": (1e-5, 1e-6)}))
