"""What is compared between runs, and in which direction it is better."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fx_interface.python_runtime.quick_dataclasses import dataclass

Figures = Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that figures give. ``more``: more is better. ``noisy``: it is a time, and differs between equal runs;
    ``tolerance``: a relative change of one that is not noisy which says nothing. ``unit``: how it is shown."""

    name: str
    title: str
    unit: str
    more: bool
    noisy: bool
    of: Callable[[Figures], float | None]
    tolerance: float = 0.0

    def show(self, value: float | None) -> str:
        """As text, with its unit."""
        if value is None:
            return ""
        if self.unit == "count":
            return f"{value:.0f}"
        return f"{value:.3g} s" if self.unit == "s" else f"{value:.2f}{self.unit}"


def _ratio(above: str, below: str) -> Callable[[Figures], float | None]:
    def of(figures: Figures) -> float | None:
        one, other = figures.get(above), figures.get(below)
        return one / other if one is not None and other else None

    return of


def _figure(name: str) -> Callable[[Figures], float | None]:
    return lambda figures: figures.get(name)


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("speedup", "speed-up over eager", "x", True, True, _ratio("eager_s", "step_s")),
        Metric("cold", "first call, cold", "s", False, True, _figure("cold_s")),
        Metric("warm", "first call, warm", "s", False, True, _figure("warm_s")),
        Metric(
            "memory", "peak memory / eager's", "x", False, False, _ratio("step_bytes", "eager_bytes"), 0.01
        ),
        Metric("graphs", "graphs", "count", False, False, _figure("graphs")),
        Metric("breaks", "graph breaks", "count", False, False, _figure("breaks")),
    )
}
"""By name. Whether a row passes is compared besides, as ``status``."""
