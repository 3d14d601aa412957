from __future__ import annotations

from fxstack_dashboard.pages.charts import Given, chart


def _given(*values: float) -> list[Given]:
    return [Given(place, value, "", "same") for place, value in enumerate(values)]


def test_points_lie_inside_and_higher_values_higher() -> None:
    made = chart("t", {"a": _given(1.0, 3.0, 2.0)}, 3, {"a": 0}, level=1.0)
    assert made is not None
    (line,) = made.lines
    assert all(made.left <= p.x <= made.right and 0 <= p.y <= made.bottom for p in line.points)
    assert line.points[1].y < line.points[2].y < line.points[0].y == made.level
    assert [p.x for p in line.points] == sorted(p.x for p in line.points)
    assert line.path.startswith("M")


def test_ticks_are_round_and_hold_all_values() -> None:
    for values in ((0.0,), (1.0,), (0.123, 0.124), (5.0, 5000.0), (1e-7, 2e-7), (1.0, 1.0)):
        made = chart("t", {"a": _given(*values)}, len(values), {"a": 0})
        assert made is not None
        ticks = [float(text) for _, text in made.ticks]
        assert 2 <= len(ticks) <= 8
        assert ticks[0] <= min(values)
        assert max(values) <= ticks[-1] * (1 + 1e-9)
        assert len(set(ticks)) == len(ticks)


def test_of_nothing_there_is_no_chart() -> None:
    assert chart("t", {"a": []}, 0, {"a": 0}) is None
