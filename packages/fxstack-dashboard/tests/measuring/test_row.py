"""Rows measured in real processes: a row passes, or fails with its reason, and never takes the measuring with it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from fxstack_dashboard.measuring.request import Request
from fxstack_dashboard.measuring.row import measure_row


def _request(suite: str, backend: str = "fxstack:eager", phase: str = "inference") -> Request:
    return Request(suite, "linear", backend, phase, rounds=3)


def test_a_row_of_the_whole_stack_passes_with_all_figures() -> None:
    outcome = measure_row(Request("tiny", "gated", "fxstack", "training", rounds=3), 120)
    assert (outcome.status, outcome.reason) == ("pass", "")
    figures = outcome.figures
    assert all((figures[name] or 0) > 0 for name in ("eager_s", "step_s", "cold_s", "warm_s"))
    assert all((figures[name] or 0) > 50_000 for name in ("eager_bytes", "step_bytes"))
    assert (figures["graphs"], figures["breaks"]) == (1, 0)
    assert figures["warm_s"] < figures["cold_s"]  # type: ignore[operator]
    assert 0 < (figures["error"] or 0) <= (figures["error_allowed"] or 0)
    assert outcome.reference == "float64"
    assert [len(outcome.samples[name]) for name in ("eager", "backend")] == [3, 3]


@pytest.mark.nightly
def test_eager_is_a_backend_without_a_compiler(models_file: Callable[..., str]) -> None:
    outcome = measure_row(_request(models_file("pass"), "eager"), 60)
    assert outcome.status == "pass"
    assert outcome.figures.keys() == {"eager_s", "eager_bytes"}


@pytest.mark.parametrize(
    "compiled, stage, reason",
    [
        pytest.param("raise ValueError('mine')", "compile", "ValueError: mine", marks=pytest.mark.nightly),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "compile", "the process was ended by SIGSEGV"),
        pytest.param("os._exit(3)", "compile", "the process ended with status 3", marks=pytest.mark.nightly),
        ("return super().forward(x) * 1.001", "accuracy", "result is 0.001 from float64"),
        pytest.param(
            "return super().forward(x)[:2]",
            "accuracy",
            "result is torch.float32[2, 4], in eager torch.float32[3, 4]",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_what_goes_wrong_only_compiled_fails_the_row(
    models_file: Callable[..., str], compiled: str, stage: str, reason: str
) -> None:
    outcome = measure_row(_request(models_file(compiled)), 60)
    assert (outcome.status, outcome.stage) == ("fail", stage)
    assert outcome.reason.startswith(reason)
    if "mine" in reason:
        assert "in forward" in outcome.traceback


@pytest.mark.nightly
def test_a_hang_ends_at_the_limit_with_all_that_it_has_started(models_file: Callable[..., str]) -> None:
    hang = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(987)'])"
    began = time.monotonic()
    outcome = measure_row(_request(models_file(hang)), 20)
    assert (outcome.status, outcome.stage, outcome.reason) == ("fail", "compile", "took more than 20 s")
    assert time.monotonic() - began < 60
    assert (
        "time.sleep(987)"
        not in subprocess.run(["ps", "ax"], capture_output=True, text=True, check=True).stdout
    )


def test_a_model_that_fails_in_eager_says_nothing_of_the_backend(models_file: Callable[..., str]) -> None:
    outcome = measure_row(_request(models_file("pass", others="raise ValueError('mine')")), 60)
    assert (outcome.status, outcome.stage, outcome.reason) == ("unusable", "eager", "ValueError: mine")


@pytest.mark.nightly
def test_breaks_are_counted_and_a_model_without_a_graph_fails(models_file: Callable[..., str]) -> None:
    outcome = measure_row(
        _request(models_file("x = x + 1; print(end=''); x = x - 1", "x = x + 1; x = x - 1")), 60
    )
    assert outcome.status == "pass", outcome.reason
    assert (outcome.figures["graphs"], outcome.figures["breaks"]) == (2, 1)
    path = models_file("return _plain(self, x)")
    with open(path, "a") as file:
        file.write("\nimport fxstack\n_plain = fxstack.disable(nn.Linear.forward)\nMADE.clear()\n")
    outcome = measure_row(_request(path), 60)
    assert (outcome.status, outcome.stage) == ("fail", "compile")
    assert outcome.reason == "no graph was captured: the model ran uncompiled"


@pytest.mark.nightly
@pytest.mark.peer
def test_stock_is_a_backend() -> None:
    outcome = measure_row(Request("tiny", "gated", "stock:eager", "inference", rounds=3), 180)
    assert outcome.status == "pass", outcome.reason
    assert (outcome.figures["graphs"], outcome.figures["breaks"]) == (1, 0)


def test_a_worker_needs_nothing_of_the_stack_but_its_errors() -> None:
    """What is measured may be an older commit's stack, when bisecting."""
    program = (
        "import sys, fxstack_dashboard.measuring.worker as w; "
        "print([m for m in sys.modules if m.split('.')[0] in ('fxstack', 'dynamo_capture', 'inductor_codegen')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
