"""Smaller constants: all that are equal change together, so that sizes keep fitting each other."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

from fxstack.minify.reductions.edits import Edit, placed

_SMALLER = (0, 1, 2, 3, 4)


def smaller(tree: ast.Module) -> Iterator[Edit]:
    """With all integers of one value made smaller, floats made whole, texts made empty."""
    seen: set[tuple[type, Any]] = set()
    for _, node in placed(tree):
        if not isinstance(node, ast.Constant) or (type(node.value), node.value) in seen:
            continue
        seen.add((type(node.value), node.value))
        for value in _smaller(node.value):
            yield _exchanged(tree, node.value, value)


def _smaller(value: object) -> list[Any]:
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int):
        return [other for other in _SMALLER if other < value]
    if isinstance(value, float):
        return [other for other in (1.0, 2.0) if value not in (1.0, 2.0)]
    if isinstance(value, str) and len(value) > 1:
        return [""]
    return []


def _exchanged(tree: ast.Module, old: object, new: object) -> Edit:
    def make() -> ast.Module:
        made = copy.deepcopy(tree)
        for node in ast.walk(made):
            if isinstance(node, ast.Constant) and type(node.value) is type(old) and node.value == old:
                node.value = new  # type: ignore[assignment]
        return made

    return make
