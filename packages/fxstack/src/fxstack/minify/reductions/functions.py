"""Fewer functions: a call gives way to what the function returns, a module to its ``forward``."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from typing import Any

from fxstack.minify.reductions.edits import Edit, edit, placed


def inlined(tree: ast.Module) -> Iterator[Edit]:
    """With each call of a function of the top level that does nothing but return replaced by what it returns."""
    for number, statement in enumerate(tree.body):
        if isinstance(statement, ast.FunctionDef) and statement.name != "program":
            first = statement.body[0]
            if isinstance(first, ast.Return) and first.value is not None:
                yield _inlined(tree, number)


def _inlined(tree: ast.Module, number: int) -> Edit:
    def change(made: Any) -> None:
        function = made.body.pop(number)
        made.body[:] = [_Inline(function).visit(statement) for statement in made.body]

    return edit(tree, 0, change=change)


class _Inline(ast.NodeTransformer):
    """Replaces the calls of one function."""

    def __init__(self, function: ast.FunctionDef) -> None:
        self._name = function.name
        self._parameters = [argument.arg for argument in function.args.args]
        self._value = function.body[0].value  # type: ignore[attr-defined]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id != self._name:
            return node
        given = dict(zip(self._parameters, node.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}
        value: ast.AST = _Bind(given).visit(copy.deepcopy(self._value))
        return value


class _Bind(ast.NodeTransformer):
    """Puts arguments in place of parameters."""

    def __init__(self, given: Mapping[str, ast.expr]) -> None:
        self._given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return copy.deepcopy(self._given.get(node.id, node))


def hoisted(tree: ast.Module) -> Iterator[Edit]:
    """With a module's ``forward`` that does not use the module in place of the module."""
    for place, node in placed(tree):
        if not isinstance(node, ast.ClassDef) or node not in tree.body:
            continue
        for number, statement in enumerate(node.body):
            if isinstance(statement, ast.FunctionDef) and statement.name == "forward":
                yield _hoisted(tree, place, number)


def _hoisted(tree: ast.Module, place: int, number: int) -> Edit:
    def change(made: Any, owner: Any) -> None:
        function = owner.body[number]
        function.name = "program"
        del function.args.args[0]
        made.body[made.body.index(owner)] = function
        made.body[:] = [statement for statement in made.body if not _binds_program(statement)]

    return edit(tree, 0, place, change=change)


def _binds_program(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", None) == "program"
