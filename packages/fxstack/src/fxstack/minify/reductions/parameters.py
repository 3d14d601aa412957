"""Fewer parameters: one is taken from a function together with the arguments of its calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from fxstack.minify.reductions.edits import Edit, edit, placed

_CALLS_OF_PROGRAM = ("INPUTS", "CALLS")


def removed(tree: ast.Module) -> Iterator[Edit]:
    """Without one positional parameter of a function, and what its callers pass for it."""
    nodes = placed(tree)
    for place, node in nodes:
        if isinstance(node, ast.FunctionDef):
            is_method = any(isinstance(other, ast.ClassDef) and node in other.body for _, other in nodes)
            for index in range(int(is_method), len(node.args.args)):
                yield _without(tree, place, index, is_method)


def _without(tree: ast.Module, place: int, index: int, is_method: bool) -> Edit:
    def change(function: Any) -> None:
        arguments = function.args
        from_end = len(arguments.args) - index
        name = arguments.args[index].arg
        del arguments.args[index]
        if from_end <= len(arguments.defaults):
            del arguments.defaults[-from_end]
        passed = index - int(is_method)
        for node in ast.walk(made[0]):
            if isinstance(node, ast.Call) and _name(node.func) == function.name:
                del node.args[passed : passed + 1]
                node.keywords = [keyword for keyword in node.keywords if keyword.arg != name]
            elif function.name in ("program", "forward") and isinstance(node, ast.Assign):
                for call in _calls(node):
                    del call.elts[passed : passed + 1]

    made: list[ast.Module] = []

    def make() -> ast.Module:
        made[:] = []
        return edited()

    def remember(root: ast.AST, function: Any) -> None:
        made.append(root)  # type: ignore[arg-type]
        change(function)

    edited = edit(tree, 0, place, change=remember)
    return make


def _name(function: ast.expr) -> str | None:
    return getattr(function, "id", None) or getattr(function, "attr", None)


def _calls(node: ast.Assign) -> Sequence[Any]:
    """The lists of arguments that an assignment of ``INPUTS`` or ``CALLS`` gives to the program."""
    target = node.targets[0]
    if not isinstance(target, ast.Name) or target.id not in _CALLS_OF_PROGRAM:
        return []
    if not isinstance(node.value, (ast.List, ast.Tuple)):
        return []
    if target.id == "INPUTS":
        return [node.value]
    return [call for call in node.value.elts if isinstance(call, (ast.List, ast.Tuple))]
