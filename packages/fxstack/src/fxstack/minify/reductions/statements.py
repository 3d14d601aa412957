"""Fewer statements: runs of them are removed, longest first; compound statements give way to what they hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fxstack.minify.reductions.edits import BLOCKS, Edit, edit, placed


def removed(tree: ast.Module) -> Iterator[Edit]:
    """Without a run of statements of one block."""
    for place, node in placed(tree):
        for name in BLOCKS:
            block = getattr(node, name, None)
            if not isinstance(block, list):
                continue
            size = len(block)
            while size:
                for start in range(0, len(block), size):
                    if not all(isinstance(item, ast.Pass) for item in block[start : start + size]):
                        yield _without(tree, place, name, start, size)
                size //= 2


def _without(tree: ast.Module, place: int, name: str, start: int, size: int) -> Edit:
    def change(node: ast.AST) -> None:
        del getattr(node, name)[start : start + size]

    return edit(tree, place, change=change)


def unwrapped(tree: ast.Module) -> Iterator[Edit]:
    """With a compound statement replaced by one of its blocks."""
    for place, node in placed(tree):
        for name in BLOCKS:
            block = getattr(node, name, None)
            for index, statement in enumerate(block if isinstance(block, list) else []):
                for inner in BLOCKS:
                    held = getattr(statement, inner, None)
                    if held and not isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                        yield _opened(tree, place, name, index, inner)


def _opened(tree: ast.Module, place: int, name: str, index: int, inner: str) -> Edit:
    def change(node: ast.AST) -> None:
        block = getattr(node, name)
        held = getattr(block[index], inner)
        block[index : index + 1] = [*_first_round(block[index]), *held] if inner == "body" else held

    return edit(tree, place, change=change)


def _first_round(statement: ast.stmt) -> list[ast.stmt]:
    """What binds the variable of a loop to its first item."""
    if not isinstance(statement, ast.For):
        return []
    first = ast.parse("next(iter(_))", mode="eval").body
    first.args[0].args[0] = statement.iter  # type: ignore[attr-defined]
    return [ast.Assign([statement.target], first)]


def plain(tree: ast.Module) -> Iterator[Edit]:
    """Without decorators, annotations, base classes, defaults and handlers, one at a time."""
    for place, node in placed(tree):
        for name in ("decorator_list", "bases", "keywords", "handlers", "items"):
            for index in range(len(getattr(node, name, None) or [])):
                if not isinstance(node, ast.Call) and not (name == "items" and len(node.items) == 1):  # type: ignore[attr-defined]
                    yield _without(tree, place, name, index, 1)
        if getattr(node, "returns", None) is not None:
            yield edit(tree, place, change=_without_returns)
        if isinstance(node, ast.arg) and node.annotation is not None:
            yield edit(tree, place, change=_without_annotation)


def _without_returns(node: ast.AST) -> None:
    node.returns = None  # type: ignore[attr-defined]


def _without_annotation(node: ast.AST) -> None:
    node.annotation = None  # type: ignore[attr-defined]
