"""Line charts as coordinates; the template draws them as SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fx_interface.python_runtime.quick_dataclasses import dataclass

WIDTH, HEIGHT = 560, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 10, 10, 22
_TICKS = 4


@dataclass(frozen=True, slots=True)
class Given:
    """A value to draw: at which place on the x axis (a run's number), what is said of it, and whether it is marked."""

    place: int
    value: float
    title: str
    mark: str


@dataclass(frozen=True, slots=True)
class Point:
    """Where a value is drawn."""

    x: float
    y: float
    title: str
    mark: str


@dataclass(frozen=True, slots=True)
class Line:
    """One series. ``number`` chooses its colour."""

    name: str
    number: int
    points: tuple[Point, ...]

    @property
    def path(self) -> str:
        """The line through all points, as SVG has it."""
        return " ".join(f"{'L' if n else 'M'}{p.x:.1f} {p.y:.1f}" for n, p in enumerate(self.points))


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines with the ticks of the y axis, each a place and a text. ``level``: where a line marks eager, if in view."""

    title: str
    lines: tuple[Line, ...]
    ticks: tuple[tuple[float, str], ...]
    level: float | None
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    bottom: int = HEIGHT - _BOTTOM


def chart(
    title: str,
    series: Mapping[str, Sequence[Given]],
    places: int,
    numbers: Mapping[str, int],
    level: float | None = None,
) -> Chart | None:
    """A chart of several series over ``places`` runs; ``level`` is drawn as a line across. None if nothing is given."""
    values = [one.value for given in series.values() for one in given]
    if not values:
        return None
    low, high, step = _range([*values, *([] if level is None else [level])])

    def x_of(place: int) -> float:
        return _LEFT + 8 + (WIDTH - _RIGHT - _LEFT - 16) * (place / (places - 1) if places > 1 else 0.5)

    def y_of(value: float) -> float:
        return _TOP + (HEIGHT - _BOTTOM - _TOP) * (high - value) / (high - low)

    lines = tuple(
        Line(name, numbers[name], tuple(Point(x_of(g.place), y_of(g.value), g.title, g.mark) for g in given))
        for name, given in series.items()
        if given
    )
    count = round((high - low) / step)
    ticks = tuple((y_of(low + n * step), f"{low + n * step:.6g}") for n in range(count + 1))
    return Chart(title, lines, ticks, None if level is None else y_of(level))


def _range(values: Sequence[float]) -> tuple[float, float, float]:
    """Lowest and highest tick around the values, and the distance between ticks: 1, 2 or 5 times a power of ten."""
    low, high = min(values), max(values)
    span = max(high - low, 0.1 * abs(high), 1e-9)
    rough = span / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    above = math.ceil(high / step - 1e-9) * step
    return math.floor(low / step + 1e-9) * step, above + (step if low == high else 0), step
