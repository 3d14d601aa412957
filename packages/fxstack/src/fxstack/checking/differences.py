"""In what two runs of a graph differ: eager, watched by the referee, and compiled."""

from __future__ import annotations

from torch import Tensor

from fxstack.checking.observe import Observed
from fxstack.verification.compare import Bounds, Difference, difference

BOUNDS = Bounds(margin=3.0, roundings=32.0)
"""A compiled result may be so far from float64."""
UNREFEREED = Bounds(margin=3.0, roundings=4096.0)
"""... and so far from eager's, where float64 could not follow."""


def differences(
    eager: Observed, compiled: Observed, other: Observed | None, is_refereed: bool
) -> list[Difference]:
    """What of ``compiled`` is not as in ``eager``. ``other``: eager with other content of uninitialized memory; what
    differs between the two is not compared."""
    found = [
        _difference(
            name, f"{compiled.facts.get(name, 'nothing')} instead of {eager.facts.get(name, 'nothing')}"
        )
        for name in {**eager.facts, **compiled.facts}
        if eager.facts.get(name) != compiled.facts.get(name)
    ]
    if "exception" in eager.facts or "exception" in compiled.facts:
        return [item for item in found if item.what == "exception"]
    bounds = BOUNDS if is_refereed else UNREFEREED
    for name in eager.values:
        if name in compiled.values:
            unknown = None if other is None else other.values.get(name)
            item = _of_value(name, eager, compiled.values[name], unknown, bounds)
            found += [] if item is None else [item]
        elif not found:
            found.append(_difference(name, "is missing"))
    return found


def _of_value(name: str, eager: Observed, mine: object, unknown: object, bounds: Bounds) -> Difference | None:
    value = eager.values[name]
    if not isinstance(value, Tensor) or not isinstance(mine, Tensor):
        same = value is None and mine is None
        if same or (not isinstance(value, Tensor) and not isinstance(mine, Tensor)):
            return None if same else difference(name, value, None, mine)
        return _difference(name, f"{_word(mine)} instead of {_word(value)}")
    if value.shape != mine.shape or value.dtype != mine.dtype:
        return None  # a fact says so
    exact = eager.exact.get(name, value.to(mine.dtype) if not value.is_floating_point() else value.double())
    if isinstance(unknown, Tensor) and unknown.shape == value.shape:
        known = (value == unknown) | (value != value)
        value, mine, exact = value[known], mine[known], exact[known]
    return difference(name, value, exact, mine, bounds)


def _word(value: object) -> str:
    return "a tensor" if isinstance(value, Tensor) else repr(value)


def _difference(what: str, why: str) -> Difference:
    return Difference(what, why, float("inf"), float("inf"), 0.0)
