"""Planted miscompilations, crashes and hangs become programs of a few lines that fail in the same way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from torch.fx import GraphModule

import dynamo_capture
from fxstack.minify import NothingToMinifyError, Settings, minify

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from planted_programs import PLANTED, program_with  # noqa: E402

MOST_LINES = 8
MOST_OPERATORS = 5


@pytest.fixture(autouse=True)
def _faults_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def operators_of(text: str) -> int:
    """The operators in the graphs of a program."""
    count = 0

    def counting(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Sequence[Any]]:
        nonlocal count
        count += sum(node.op in ("call_function", "call_method") for node in graph_module.graph.nodes)
        return graph_module.forward

    namespace: dict[str, Any] = {"__name__": "minified"}
    exec(compile(text, "minified.py", "exec"), namespace)
    run = dynamo_capture.optimize(counting)(namespace["program"])
    for call in namespace.get("CALLS") or [namespace["INPUTS"]]:
        run(*call)
    return count


@pytest.mark.nightly
@pytest.mark.parametrize("backend", PLANTED)
def test_a_planted_fault_is_all_that_remains(backend: str, tmp_path: Path) -> None:
    found = minify(program_with(PLANTED[backend]), Settings(backend=backend))
    operators = operators_of(found.text)
    print(
        f"{backend}: {found.lines_before} lines became {found.lines} of {operators} operators, {found.seconds:.0f} s"
    )
    assert found.lines <= MOST_LINES or operators <= MOST_OPERATORS, found
    assert found.lines_before > 40
    script = tmp_path / "minified.py"
    script.write_text(found.text)
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 1, run.stderr
    assert run.stdout.startswith(found.outcome.kind)


SCRIPT = """
import torch

def scaled(x, factor):
    y = x * factor
    for _ in range(2):
        y = y + torch.sin(x)
    return torch.erf(y).sum()

compiled = torch.compile(scaled, backend=BACKEND)
for factor in (2, 3):
    x = torch.ones(3)
    assert torch.allclose(compiled(x, factor), scaled(x, factor)), "they differ"
print("done")
"""


def test_a_script_that_only_fails_when_compiled() -> None:
    text = "from planted_faults import wrong_pointwise as BACKEND\n" + SCRIPT
    found = minify(text)
    assert (found.outcome.kind, found.outcome.what) == ("error", "AssertionError")
    assert "torch.erf" in found.text
    assert "sin" not in found.text
    assert found.lines <= 6


@pytest.mark.nightly
def test_a_call_that_is_slower_than_eager() -> None:
    text = program_with("x = x + torch.sort(x, -1)[0]")
    settings = Settings(backend="planted_faults:slow", slower_than=4.0)
    found = minify(text.replace("range(2)", "range(1)"), settings, seconds=60)
    assert found.outcome.kind == "slow"
    assert "torch.sort" in found.text
    assert found.lines < 20


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def program(x):\n    return x + 1\nINPUTS = (2,)\n", "compiled, it does what it does in eager"),
        pytest.param(
            "def program(x):\n    return missing\nINPUTS = (2,)\n",
            "invalid: NameError",
            marks=pytest.mark.nightly,
        ),
        pytest.param("raise SystemExit(3)\n", "invalid: SystemExit", marks=pytest.mark.nightly),
    ],
    ids=["right", "wrong in eager", "a script that fails in eager"],
)
def test_what_does_not_fail_is_refused(text: str, reason: str) -> None:
    with pytest.raises(NothingToMinifyError, match=reason):
        minify(text, Settings(backend="eager"))
