"""From the graph's results to the program's: inputs passed through, duplicates, constants, and views made again.

    result := ["graph", n] | ["leaf", n] | ["weight", n] | ["same", n] | ["constant", value]
            | ["view", result, [[operator, [argument...], {name: argument}, index or null, (true)]...]]

``n`` counts the graph's results, the leaves of the arguments, the constants of the graph, or the program's earlier
results. ``true``: the view is made with gradients off. Sizes in arguments of views are ``{"expr": postfix}``, as in the
contract.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from fxstack_artifact.errors import unreadable
from fxstack_artifact.program.operators import operator_named
from fxstack_artifact.program.sizes import Sizes, postfix

Values = tuple[Sequence[Any], Sequence[Any], Sequence[Any], Sequence[int]]
"""Leaves, graph results, earlier results of the program, and the values of the symbols."""
Make = Callable[[Values], Any]


def result_maker(
    described: Sequence[Any], constants: Sequence[torch.Tensor], sizes: Sizes
) -> Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]:
    """A function of the leaves and the graph's results that gives the program's results."""
    if all(item[0] == "graph" and item[1] == i for i, item in enumerate(described)):
        return lambda leaves, results: results
    parts = [_part(item, constants) for item in described]

    def make(leaves: Sequence[Any], results: Sequence[Any]) -> Sequence[Any]:
        made: list[Any] = []
        values = (leaves, results, made, sizes(leaves))
        for part in parts:
            made.append(part(values))
        return made

    return make


def _part(item: Any, constants: Sequence[torch.Tensor]) -> Make:
    kind, content = item[0], item[1]
    match kind:
        case "graph":
            return lambda values: values[1][content]
        case "leaf":
            return lambda values: values[0][content]
        case "weight":
            constant = constants[content]
            return lambda values: constant
        case "same":
            return lambda values: values[2][content]
        case "constant":
            return lambda values: content
        case "view":
            return _view(_part(content, constants), [_step(step) for step in item[2]])
    raise unreadable(f"{kind!r} is no kind of result")


def _view(base: Make, steps: Sequence[Callable[[Any, Sequence[int]], Any]]) -> Make:
    def make(values: Values) -> Any:
        value = base(values)
        for step in steps:
            value = step(value, values[3])
        return value

    return make


def _step(data: Any) -> Callable[[Any, Sequence[int]], Any]:
    name, args, kwargs, index, *rest = data
    no_grad = rest == [True]
    operator = operator_named(name)
    given = [_argument(arg) for arg in args]
    named = {str(key): _argument(value) for key, value in kwargs.items()}

    def step(value: Any, symbols: Sequence[int]) -> Any:
        with torch.set_grad_enabled(torch.is_grad_enabled() and not no_grad):
            made = operator(
                value,
                *(part(symbols) for part in given),
                **{key: part(symbols) for key, part in named.items()},
            )
        return made if index is None else made[index]

    return step


def _argument(data: Any) -> Callable[[Sequence[int]], Any]:
    if isinstance(data, list):
        parts = [_argument(item) for item in data]
        return lambda symbols: [part(symbols) for part in parts]
    if isinstance(data, dict):
        match data:
            case {"expr": words}:
                return postfix(words)
            case {"dtype": str(name)} if isinstance(getattr(torch, name, None), torch.dtype):
                dtype = getattr(torch, name)
                return lambda symbols: dtype
        raise unreadable(f"{data!r} is no argument of a view")
    return lambda symbols: data
