"""Fewer variables: the value of an assignment moves to where the variable is read."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

from fxstack.minify.reductions.edits import BLOCKS, Edit, edit, placed


def inlined(tree: ast.Module) -> Iterator[Edit]:
    """With a variable's value in place of its reads further down in the block, and without the assignment."""
    for place, node in placed(tree):
        for name in BLOCKS:
            block = getattr(node, name, None)
            for index, statement in enumerate(block if isinstance(block, list) else []):
                target = statement.targets[0] if isinstance(statement, ast.Assign) else None
                if isinstance(target, ast.Name) and target.id not in ("INPUTS", "CALLS", "program"):
                    yield _inlined(tree, place, name, index)


def _inlined(tree: ast.Module, place: int, name: str, index: int) -> Edit:
    def change(node: Any) -> None:
        block = getattr(node, name)
        assignment = block.pop(index)
        variable = assignment.targets[0].id
        for position in range(index, len(block)):
            block[position] = _Replace(variable, assignment.value).visit(block[position])
            if _stores(block[position], variable):
                break

    return edit(tree, place, change=change)


def _stores(statement: ast.AST, variable: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == variable and isinstance(node.ctx, ast.Store)
        for node in ast.walk(statement)
    )


class _Replace(ast.NodeTransformer):
    """Puts a value where a variable is read."""

    def __init__(self, variable: str, value: ast.expr) -> None:
        self._variable = variable
        self._value = value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == self._variable and isinstance(node.ctx, ast.Load):
            return copy.deepcopy(self._value)
        return node
