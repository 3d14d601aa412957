"""Functions of ``torch.fx`` that are written in C."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx.immutable_collections import immutable_dict, immutable_list

from dynamo_capture.polyfills.registry import substitutes


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
