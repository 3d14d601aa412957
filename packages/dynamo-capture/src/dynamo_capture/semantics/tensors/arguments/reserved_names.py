"""Keyword arguments whose names are reserved words (``**{"from": 0}``), which the text of a graph cannot name."""

from __future__ import annotations

import keyword

import torch

from dynamo_capture.foundation.break_kinds import UNTRACEABLE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values import Value


def without_reserved_names(
    name: str, args: list[Value], kwargs: dict[str, Value]
) -> tuple[list[Value], dict[str, Value]]:
    """The arguments of a method after the tensor, with those by position."""
    if not any(map(keyword.iskeyword, kwargs)):
        return args, kwargs
    args, kwargs = list(args), dict(kwargs)
    for reserved in filter(keyword.iskeyword, list(kwargs)):
        if (reserved, len(args)) not in _places(name):
            raise GraphBreak(
                UNTRACEABLE, f"{name} gets an argument {reserved!r}, which has no place of its own"
            )
        args.append(kwargs.pop(reserved))
    return args, kwargs


def _places(name: str) -> set[tuple[str, int]]:
    """The names and places of a method's parameters after the tensor."""
    packet = getattr(torch.ops.aten, name, None)
    overloads = [] if packet is None else [getattr(packet, each) for each in packet.overloads()]
    return {
        (argument.name, place)
        for overload in overloads
        for place, argument in enumerate(overload._schema.arguments[1:])
        if not argument.kwarg_only
    }
