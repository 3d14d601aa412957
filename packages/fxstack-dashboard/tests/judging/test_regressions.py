"""The rule by which a value is worse than those before it."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from fxstack_dashboard.judging.metrics import METRICS
from fxstack_dashboard.judging.regressions import judge, noise_of, verdicts
from fxstack_dashboard.judging.summaries import Summary, summarize
from fxstack_dashboard.storing.records import Result

MakeResult = Callable[..., Result]


def _kind(metric: str, earlier: list[list[float]], now: list[float]) -> str:
    return judge(METRICS[metric], earlier, now, 0.05)[0]


def test_without_measured_noise_only_a_large_change_counts() -> None:
    assert _kind("cold", [[1.0]], [1.14]) == "same"
    assert _kind("cold", [[1.0]], [1.16]) == "regression"
    assert _kind("cold", [[1.0]], [0.86]) == "improvement"


def test_repeats_that_agree_make_small_changes_count() -> None:
    steady = [1.0, 1.001, 0.999]
    assert _kind("cold", [steady] * 8, [1.04, 1.041, 1.039]) == "same"  # below the threshold
    assert _kind("cold", [steady] * 8, [1.06, 1.061, 1.059]) == "regression"
    assert _kind("cold", [steady], [1.07, 1.071, 1.069]) == "regression"
    assert _kind("cold", [[1.0]], [1.07]) == "same"


def test_repeats_that_disagree_hide_changes() -> None:
    shaky = [0.8, 1.0, 1.25]
    assert _kind("cold", [shaky], [1.1, 1.3, 1.5]) == "same"


def test_noise_between_runs_is_not_moved_by_one_real_change() -> None:
    levels = [[1.0], [1.01]] * 8
    changed = [*levels, *([[1.5], [1.51]] * 2)]
    noise = noise_of(levels, 1)
    assert noise == pytest.approx(0.0163, rel=0.05)  # of 1.04%, and once 5%
    assert noise_of(changed, 1) == pytest.approx(noise, rel=0.1)
    assert noise_of([[1.0], [1.1]], 1) is None


def test_noise_is_about_the_standard_deviation() -> None:
    drawn = random.Random(1)
    runs = [[drawn.lognormvariate(0, 0.03)] for _ in range(400)]
    assert noise_of(runs, 1) == pytest.approx(0.03, rel=0.15)
    repeated = [[drawn.lognormvariate(0, 0.03) for _ in range(400)] for _ in range(2)]
    assert noise_of(repeated, 1) == pytest.approx(0.03, rel=0.15)
    assert noise_of(repeated, 4) == pytest.approx(0.015, rel=0.15)


@pytest.mark.parametrize("runs, most", [(1, 15), (5, 15), (20, 10)])
def test_steady_runs_seldom_count_as_worse(runs: int, most: int) -> None:
    drawn = random.Random(2)
    wrong = 0
    for _ in range(1000):
        earlier = [[drawn.lognormvariate(0, 0.03)] for _ in range(runs)]
        wrong += _kind("cold", earlier, [drawn.lognormvariate(0, 0.03)]) == "regression"
    assert wrong <= most


def test_a_change_of_five_times_the_noise_is_found() -> None:
    drawn = random.Random(3)
    found = 0
    for _ in range(200):
        earlier = [[drawn.lognormvariate(0, 0.02)] for _ in range(20)]
        found += _kind("cold", earlier, [1.13 * drawn.lognormvariate(0, 0.02)]) == "regression"
    assert found >= 180


def test_more_is_better_for_a_speed_up() -> None:
    assert _kind("speedup", [[2.0]], [1.5]) == "regression"
    assert _kind("speedup", [[2.0]], [2.5]) == "improvement"


def test_counts_and_bytes_have_no_noise() -> None:
    assert _kind("breaks", [[0.0]], [1.0]) == "regression"
    assert _kind("breaks", [[1.0]], [0.0]) == "improvement"
    assert _kind("breaks", [[0.0]], [0.0]) == "same"
    assert _kind("graphs", [[1.0]], [2.0]) == "regression"
    assert _kind("memory", [[1.0]], [1.009]) == "same"
    assert _kind("memory", [[1.0]], [1.02]) == "regression"


def test_the_baseline_is_the_median_of_the_last_runs() -> None:
    assert _kind("cold", [[9.0]] * 9 + [[1.0], [1.0], [1.01], [1.0], [1.5]], [1.0]) == "same"
    assert _kind("cold", [[1.0], [1.0], [1.01], [1.0], [1.5]], [1.5]) == "regression"


def _summary(make_result: MakeResult, run: str, **changed: object) -> Summary:
    return summarize([make_result(run, **changed)])[run, make_result(run).key]


def test_a_row_that_passed_and_fails_is_a_regression(make_result: MakeResult) -> None:
    passed = _summary(make_result, "a")
    failed = _summary(make_result, "b", status="fail", figures={})
    unusable = _summary(make_result, "c", status="unusable", figures={})
    assert [(v.metric, v.kind) for v in verdicts([passed], failed)] == [("status", "regression")]
    first, *_ = verdicts([passed, failed], passed)
    assert (first.metric, first.kind) == ("status", "improvement")
    assert verdicts([passed], unusable) == []
    assert verdicts([unusable], failed) == []
    assert verdicts([passed, unusable], failed) != []
    assert verdicts([], passed) == []


def test_a_row_passes_if_every_repeat_does(make_result: MakeResult) -> None:
    repeats = [
        make_result("a", repeat=n, status="fail" if n == 1 else "pass", reason=f"r{n}") for n in range(3)
    ]
    (summary,) = summarize(repeats).values()
    assert (summary.status, summary.reason) == ("fail", "r1")
    assert len(summary.values["speedup"]) == 2
