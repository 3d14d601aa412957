"""The search: reductions are tried until none leads to a smaller program that fails in the same way."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable

from fxstack.minify.reductions import constants, expressions, functions, parameters, statements, variables
from fxstack.minify.reductions.edits import Edit, Reduction

REDUCTIONS: tuple[Reduction, ...] = (
    statements.removed,
    statements.unwrapped,
    parameters.removed,
    expressions.operands,
    expressions.elements,
    statements.plain,
    functions.inlined,
    functions.hoisted,
    variables.inlined,
    constants.smaller,
)
"""In the order in which they are tried: what takes away most comes first."""

_COMPOUND = 12


def shortest(text: str, fails: Callable[[str], bool], seconds: float) -> str:
    """The smallest text that was found for which ``fails`` is true, within a time.

    ``text`` fails. The result is a local minimum if the time sufficed: no single edit makes it smaller.
    """
    end = time.monotonic() + seconds
    best = ast.unparse(ast.parse(text))
    if not fails(best):
        return text
    changed = True
    while changed and time.monotonic() < end:
        changed = False
        for reduction in REDUCTIONS:
            smaller = _exhausted(best, reduction, fails, end)
            changed |= smaller != best
            best = smaller
    return best


def _exhausted(best: str, reduction: Reduction, fails: Callable[[str], bool], end: float) -> str:
    """What remains when no edit of this reduction succeeds any more."""
    skipped = 0
    tree = ast.parse(best)
    while True:
        found = None
        for number, edit in enumerate(reduction(tree)):
            if time.monotonic() > end:
                return best
            if number >= skipped:
                found = _text(edit, tree)
                if found is not None and fails(found):
                    break
                found = None
        if found is None:
            if skipped == 0:
                return best
            skipped = 0
            continue
        best, tree, skipped = found, ast.parse(found), number


def _text(edit: Edit, tree: ast.Module) -> str | None:
    """The text of an edited program; None where the edit makes no valid or no smaller program."""
    try:
        made = ast.unparse(edit())
        parsed = ast.parse(made)
        compile(made, "<candidate>", "exec")
    except (SyntaxError, ValueError):
        return None
    return made if _measure(parsed) < _measure(tree) else None


def _measure(tree: ast.Module) -> tuple[int, float]:
    """The size of a program: nodes of its tree, of which statements that hold others count most, then its constants."""
    constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    weight = sum(abs(value) if isinstance(value, (int, float)) else len(str(value)) for value in constants)
    return sum(_COMPOUND if hasattr(node, "body") else 1 for node in ast.walk(tree)), weight
