"""The results of a library call: which are read, in the order in which they come, and what they are called."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

from torch.fx import Node

from inductor_codegen.lower.values import Operand


def used_results(node: Node) -> set[Any]:
    """Positions of a call's results that something reads; all of them if the call itself is passed on."""
    if all(user.target is operator.getitem for user in node.users):
        return {user.args[1] for user in node.users}
    return set(range(64))


def results_of(spec: Any) -> list[tuple[int, Any]]:
    """The flattened results of a call, each with the place among the results of the one that it is, or is part of."""
    if not isinstance(spec, tuple | list):
        return [(0, spec)]
    return [(place, item) for place, part in enumerate(spec) for _, item in results_of(part)]


def nested(spec: Any, operands: Iterator[Operand | None]) -> Any:
    """The operands of flattened results, as the call returns them."""
    if isinstance(spec, tuple | list):
        return tuple([nested(part, operands) for part in spec])
    return next(operands)


def result_name(node: Node, position: int, single: bool) -> str:
    return node.name if single else f"{node.name}_{position}"
