from __future__ import annotations

from collections.abc import Callable

import pytest

from fxstack_dashboard.judging.overview import geomean, overview
from fxstack_dashboard.judging.summaries import summarize
from fxstack_dashboard.storing.records import Key, Result


def test_geometric_means_are_over_rows_that_pass(make_result: Callable[..., Result]) -> None:
    results = [
        make_result(
            "a",
            key=Key("tiny", "one", "fxstack", "inference", "cpu"),
            figures={"eager_s": 4.0, "step_s": 1.0},
        ),
        make_result(
            "a",
            key=Key("tiny", "two", "fxstack", "inference", "cpu"),
            figures={"eager_s": 1.0, "step_s": 1.0},
        ),
        make_result("a", key=Key("tiny", "three", "fxstack", "inference", "cpu"), status="fail"),
        make_result("a", key=Key("tiny", "four", "fxstack", "inference", "cpu"), status="unusable"),
        make_result("a", key=Key("tiny", "one", "stock", "inference", "cpu")),
    ]
    ours, stock = overview(summarize(results).values())
    assert (ours.passed, ours.total, ours.unusable, ours.rate) == (2, 3, 1, pytest.approx(2 / 3))
    assert ours.speedup == pytest.approx(2.0)
    assert ours.cold is None
    assert (stock.backend, stock.passed, stock.speedup) == ("stock", 1, pytest.approx(2.0))


def test_a_geometric_mean_of_nothing_is_none() -> None:
    assert geomean([]) is None
    assert geomean([None]) is None
    assert geomean([1.0, 4.0, None]) == pytest.approx(2.0)
