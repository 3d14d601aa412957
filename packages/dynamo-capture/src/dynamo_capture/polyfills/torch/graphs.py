"""What captured graphs call: functions of ``torch.fx`` that are written in C, and transforms of a graph that is
captured once more, as the ``torch.func`` that they were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx.immutable_collections import immutable_dict, immutable_list

from dynamo_capture.polyfills.registry import substitutes
from fx_interface.regions import gradient, mapped, pushed


@substitutes(torch._C._fx_map_aggregate)
def map_aggregate(value: Any, function: Callable[[Any], Any]) -> Any:
    """Containers and slices anew, with what ``function`` makes of everything else in them."""
    if isinstance(value, tuple):
        items = [map_aggregate(item, function) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return immutable_list([map_aggregate(item, function) for item in value])
    if isinstance(value, dict):
        made: Any = immutable_dict()
        for key, item in value.items():
            dict.__setitem__(made, key, map_aggregate(item, function))
        return made
    if isinstance(value, slice):
        bounds = [map_aggregate(bound, function) for bound in (value.start, value.stop, value.step)]
        return slice(*bounds)
    return function(value)


@substitutes(mapped)
def _mapped(
    body: Callable[..., Any],
    *args: Any,
    in_dims: Sequence[int],
    out_dims: Sequence[int | None],
    randomness: str = "error",
) -> Any:
    of_all = (*in_dims, *[None] * (len(args) - len(in_dims)))
    results: Any = tuple(out_dims)
    return torch.vmap(body, of_all, results, randomness)(*args)


@substitutes(gradient)
def _gradient(body: Callable[..., Any], *args: Any, wrt: int, seeds: int = 0) -> Any:
    given, others = args[wrt : wrt + seeds], args[wrt + seeds :]

    def differentiated(*leaves: Any) -> Any:
        results = tuple(body(*leaves, *others))
        return results[: max(seeds, 1)], results

    transform: Any = torch.func.vjp
    values, pull, results = transform(differentiated, *args[:wrt], has_aux=True)
    return (*pull(given or (torch.ones_like(values[0]),)), *results)


@substitutes(pushed)
def _pushed(body: Callable[..., Any], *args: Any, wrt: int, results: int) -> Any:
    others = args[2 * wrt :]

    def differentiated(*leaves: Any) -> Any:
        found = tuple(body(*leaves, *others))
        return found[:results], found

    transform: Any = torch.func.jvp
    _, changes, found = transform(differentiated, args[:wrt], args[wrt : 2 * wrt], has_aux=True)
    return (*changes, *found)
