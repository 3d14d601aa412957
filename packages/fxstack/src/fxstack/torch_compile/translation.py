"""From the modes and options of ``torch.compile`` to those of this stack, and what has to be said about the rest."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fxstack.torch_compile.arguments import ARGUMENTS, MODES
from fxstack.torch_compile.entry import DONE
from fxstack.torch_compile.option_families import FAMILIES
from fxstack.torch_compile.passed_on import PASSED_ON


class OptionWarning(UserWarning):
    """An argument of ``fxstack.compile`` is taken, and something else happens than in ``torch.compile``."""


def say(notes: Sequence[str]) -> None:
    """One warning for all that a call has to be told, at the line of the program that made the call."""
    if not notes:
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "fxstack":
        level, frame = level + 1, frame.f_back
    text = "; ".join(notes)
    warnings.warn(f"taken from torch.compile, with another meaning here: {text}", OptionWarning, level)


def mode_notes(mode: str) -> list[str] | None:
    """What to say about a mode of ``torch.compile``; None: it has no such mode."""
    found = next((entry for entry in MODES if entry.name == mode), None)
    if found is None:
        return None
    return [] if found.state == DONE else [f"mode={mode!r}: {found.here}"]


def argument_notes(given: Mapping[str, Any]) -> list[str]:
    """What to say about arguments that are taken and do something else."""
    return [
        f"{entry.name}: {entry.here}"
        for entry in ARGUMENTS
        if entry.state != DONE and not entry.quiet and given.get(entry.name) is not None
    ]


def torch_option(name: str, value: Any) -> tuple[dict[str, Any], list[str]] | None:
    """Our options for one of stock's code generator's, and what to say about it; None: there is no such option.

    A value that asks for nothing (False, None, 0, an empty text or container) needs no words.
    """
    known = name.replace("-", "_")
    if known in PASSED_ON:
        return PASSED_ON[known].as_ours(value), []
    family = next((family for family in FAMILIES if known in family.names), None)
    if family is None:
        return None
    if family.is_done or not value:
        return {}, []
    return {}, [f"option {known!r}: {family.here}"]


def nearest(name: str, known: Collection[str]) -> str:
    """Advice about a name that is unknown: the nearest known one, if one is near."""
    near = difflib.get_close_matches(name.replace("-", "_"), known, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}? " if near else ""


def every_option() -> list[str]:
    """All options of stock's code generator."""
    return [*PASSED_ON, *(name for family in FAMILIES for name in family.names)]
