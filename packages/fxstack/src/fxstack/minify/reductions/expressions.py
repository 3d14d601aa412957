"""Smaller expressions: an operation gives way to one of its operands, a container loses an element."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

from fxstack.minify.reductions.edits import Edit, edit, placed, replacing


def operands(tree: ast.Module) -> Iterator[Edit]:
    """With an operation replaced by one of its operands."""
    for place, node in placed(tree):
        for choose in _choices(node):
            yield replacing(tree, place, choose)


def _choices(node: ast.AST) -> list[Callable[[Any], ast.AST]]:
    if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
        return []
    if isinstance(node, ast.Call):
        owner = [_owner] if isinstance(node.func, ast.Attribute) else []
        return [
            *(_argument(n) for n in range(len(node.args))),
            *owner,
            *(_keyword(n) for n in range(len(node.keywords))),
        ]
    if isinstance(node, ast.BinOp):
        return [_field("left"), _field("right")]
    if isinstance(node, ast.BoolOp):
        return [_element("values", n) for n in range(len(node.values))]
    if isinstance(node, ast.Compare):
        return [_field("left"), _element("comparators", 0)]
    if isinstance(node, ast.IfExp):
        return [_field("body"), _field("orelse")]
    if isinstance(node, ast.UnaryOp):
        return [_field("operand")]
    if isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred, ast.Await, ast.NamedExpr)):
        return [_field("value")]
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [_element("elts", n) for n in range(len(node.elts))]
    if isinstance(node, ast.Dict):
        return [_element("values", n) for n in range(len(node.values))]
    if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
        return [lambda node: node.generators[0].iter, lambda node: ast.List([node.elt], ast.Load())]
    return []


def _field(name: str) -> Callable[[Any], ast.AST]:
    return lambda node: getattr(node, name)


def _element(name: str, index: int) -> Callable[[Any], ast.AST]:
    return lambda node: getattr(node, name)[index]


def _argument(index: int) -> Callable[[Any], ast.AST]:
    return _element("args", index)


def _keyword(index: int) -> Callable[[Any], ast.AST]:
    return lambda node: node.keywords[index].value


def _owner(node: Any) -> ast.AST:
    owner: ast.AST = node.func.value
    return owner


def elements(tree: ast.Module) -> Iterator[Edit]:
    """Without one element of a container, one argument of a call, one part of a comparison or of a text."""
    for place, node in placed(tree):
        for name in ("elts", "args", "keywords", "values", "generators"):
            held = getattr(node, name, None)
            if not isinstance(held, list) or isinstance(node, (ast.BoolOp, ast.ClassDef, ast.arguments)):
                continue
            for index in range(len(held)):
                if not (name == "generators" and len(held) == 1):
                    yield _without(tree, place, node, name, index)


def _without(tree: ast.Module, place: int, node: ast.AST, name: str, index: int) -> Edit:
    def change(found: Any) -> None:
        del getattr(found, name)[index]
        if isinstance(found, ast.Dict):
            del found.keys[index]

    return edit(tree, place, change=change)
