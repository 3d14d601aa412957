"""Groups: the values of one kernel, and how each of them stands to the kernel's loops."""

from __future__ import annotations

from dataclasses import field
from enum import Enum

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.schedule.fusion.domain import Domain


class Position(Enum):
    """How a value's elements correspond to the points of a group's loops."""

    FULL = "full"
    ROW = "row"
    OTHER = "other"

    __hash__ = (
        object.__hash__
    )  # an enumeration's is a Python function; sets of positions are made by the thousand


@dataclass(slots=True, eq=False)
class Group:
    """The values of one kernel. ``unit`` numbers it among the program's units; ``stored`` values go to
    memory. ``windows`` are those that sum over windows of images; a group with one reduces nothing.
    """

    unit: int
    domain: Domain
    device: torch.device
    members: dict[int, set[Position]] = field(default_factory=dict)
    stored: dict[int, Position] = field(default_factory=dict)
    reductions: set[int] = field(default_factory=set)
    windows: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Grouping:
    """The groups by unit, and the order of units; units below ``len(lowered.calls)`` are library calls."""

    groups: dict[int, Group]
    order: tuple[int, ...]
