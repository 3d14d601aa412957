"""Edits of a syntax tree: nodes are found again in a copy by their place in a walk of the tree."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import Any

Edit = Callable[[], ast.Module]
Reduction = Callable[[ast.Module], Iterator[Edit]]

BLOCKS = ("body", "orelse", "finalbody")


def edit(tree: ast.Module, *places: int, change: Callable[..., None]) -> Edit:
    """The edit that calls ``change`` with the copies of the nodes at ``places``."""

    def make() -> ast.Module:
        made = copy.deepcopy(tree)
        nodes = list(ast.walk(made))
        change(*(nodes[place] for place in places))
        return filled(made)

    return make


def replacing(tree: ast.Module, place: int, choose: Callable[[Any], ast.AST]) -> Edit:
    """The edit that puts what ``choose`` makes of the node at ``place`` in that node's stead."""

    def make() -> ast.Module:
        made = copy.deepcopy(tree)
        old = list(ast.walk(made))[place]
        new = choose(old)
        if isinstance(old, ast.expr) and isinstance(getattr(old, "ctx", None), (ast.Store, ast.Del)):
            raise ValueError("a target of an assignment is no expression to replace")
        for parent in ast.walk(made):
            for name, value in ast.iter_fields(parent):
                if value is old:
                    setattr(parent, name, new)
                elif isinstance(value, list):
                    value[:] = [new if item is old else item for item in value]
        return filled(made)

    return make


def filled(tree: ast.Module) -> ast.Module:
    """The tree with ``pass`` in blocks that may not be empty."""
    for node in ast.walk(tree):
        if isinstance(getattr(node, "body", None), list) and not isinstance(node, ast.Module):
            node.body[:] = node.body or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.fix_missing_locations(tree)


def placed(tree: ast.Module) -> list[tuple[int, ast.AST]]:
    """The nodes of the tree with their places, from the outermost inwards."""
    return list(enumerate(ast.walk(tree)))
