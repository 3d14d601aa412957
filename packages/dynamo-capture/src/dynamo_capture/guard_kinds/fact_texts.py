"""Facts about numbers as a reader writes them: one expression of what the program reads.

def holds(x0):
    y0 = (x0 + 1)
    y1 = (0.1 / y0)
    return same(y1, 0.05) is True      ->      0.1 / (self.step + 1) == 0.05
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

_MOST_LINES = 8
"""Of longer ones the expression would be longer than its lines."""


def fact_in_words(text: str, names: Sequence[str]) -> str:
    """What ``text``, a function of numbers with these ``names``, asks of them."""
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    *steps, answer = function.body
    known: dict[str, ast.expr] = {
        argument.arg: ast.Name(name) for argument, name in zip(function.args.args, names, strict=True)
    }
    inlined = _Inlined(known)
    if len(steps) > _MOST_LINES or not all(_is_simple(step) for step in steps):
        return "; ".join(ast.unparse(inlined.visit(step)) for step in (*steps, answer))
    for step in steps:
        assert isinstance(step, ast.Assign)
        assert isinstance(step.targets[0], ast.Name)
        known[step.targets[0].id] = inlined.visit(step.value)
    assert isinstance(answer, ast.Return)
    assert answer.value is not None
    whole = inlined.visit(answer.value)
    tests = whole.values if isinstance(whole, ast.BoolOp) and isinstance(whole.op, ast.And) else [whole]
    return " and ".join(map(_test, tests))


class _Inlined(ast.NodeTransformer):
    def __init__(self, known: dict[str, ast.expr]) -> None:
        self._known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._known.get(node.id, node) if isinstance(node.ctx, ast.Load) else node


def _is_simple(step: ast.stmt) -> bool:
    return isinstance(step, ast.Assign) and len(step.targets) == 1 and isinstance(step.targets[0], ast.Name)


def _test(asked: ast.expr) -> str:
    """``same(a, b) is True`` -> ``a == b``; ``(a < b) is False`` -> ``not a < b``."""
    match asked:
        case ast.Compare(left=fact, ops=[ast.Is()], comparators=[ast.Constant(value=bool(answer))]):
            pass
        case _:
            return ast.unparse(asked)
    match fact:
        case ast.Call(func=ast.Name(id="same"), args=[lhs, rhs]):
            return f"{ast.unparse(lhs)} {'==' if answer else '!='} {ast.unparse(rhs)}"
    return ast.unparse(fact) if answer else f"not {ast.unparse(fact)}"
