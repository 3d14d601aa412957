"""Processes that a program under ``fxstack run`` starts, each in a process of its own as a user starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SPAWNING = """
import multiprocessing
import torch

@torch.compile
def program(x):
    print("part", flush=True)
    return x + 1

def work(rank):
    program(torch.ones(3))

if __name__ == "__main__":
    started = [multiprocessing.get_context("spawn").Process(target=work, args=(rank,)) for rank in range(2)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    assert [process.exitcode for process in started] == [0, 0]
"""


def _run(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fxstack", *map(str, arguments)]
    environment = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=300)


def _script(folder: Path, text: str) -> Path:
    file = folder / "script.py"
    file.write_text(text)
    return file


def _starting(text: str, *options: str) -> str:
    """A script that runs another Python."""
    return f"import subprocess, sys\nsubprocess.run([sys.executable, *{options!r}, '-c', {text!r}], check=True)\n"


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of a program that compiles in two processes and not itself."""
    run = _run("run", "--json", _script(tmp_path_factory.mktemp("spawning"), SPAWNING))
    assert run.returncode == 0, run.stderr
    data: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return data


def test_what_spawned_processes_compile_is_in_the_record(record: dict[str, Any]) -> None:
    assert record["frames"] == []
    assert len({process["process"] for process in record["processes"]}) == 2
    for process in record["processes"]:
        assert [stop["code"] for stop in process["breaks"]] == ["CAP236"]
        assert process["command"][0].endswith(Path(sys.executable).name)


@pytest.mark.nightly
def test_processes_that_did_the_same_are_one_summary(tmp_path: Path) -> None:
    run = _run("run", _script(tmp_path, SPAWNING))
    assert run.stdout == "part\npart\n"
    assert "fxstack: nothing was compiled in this process" in run.stderr
    assert run.stderr.count("graph break [CAP236]") == 1
    assert "fxstack: processes " in run.stderr
    assert "more: fxstack explain" in run.stderr


@pytest.mark.nightly
def test_each_process_has_its_page_and_its_part_of_the_explanation(tmp_path: Path) -> None:
    script, page = _script(tmp_path, SPAWNING), tmp_path / "page.html"
    written = json.loads(_run("report", "--json", "-o", page, script).stdout.splitlines()[-1])
    assert written["page"] == str(page)
    assert len(written["processes"]) == 2
    for other in written["processes"]:
        assert "print() writes to the terminal" in Path(other).read_text()
    assert _run("explain", script).stdout.count("\nprocess ") == 2


@pytest.mark.nightly
def test_a_process_that_compiles_nothing_leaves_nothing(tmp_path: Path) -> None:
    run = _run("run", "--json", _script(tmp_path, _starting("import torch; torch.ones(2) + 1")))
    assert json.loads(run.stdout.splitlines()[-1])["processes"] == []


def test_a_started_python_is_as_it_would_be_without(tmp_path: Path) -> None:
    """Its search path, what it has imported so far, torch's loader, and a ``sitecustomize`` of the user's own."""
    (tmp_path / "sitecustomize.py").write_text("print('mine')\n")
    shown = (
        "import sys\nprint(sys.path, sorted(name for name in sys.modules if 'site' in name))\n"
        "import torch\nprint(type(torch.__loader__), torch.__spec__.loader is torch.__loader__)\n"
        "print([finder for finder in sys.meta_path if 'Torch' in str(finder)])\n"
    )
    script = _script(tmp_path, _starting(shown))
    plain = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=True,
    )
    run = _run("run", "--quiet", script, PYTHONPATH=str(tmp_path))
    assert run.stdout.splitlines() == plain.stdout.splitlines()
    assert plain.stdout.splitlines()[1] == "mine"


@pytest.mark.nightly
def test_a_python_without_fxstack_runs_as_ever(tmp_path: Path) -> None:
    text = "import sys; sys.modules['fxstack'] = None; import torch; print(torch.compile.__module__)"
    run = _run("run", "--quiet", _script(tmp_path, _starting(text)))
    assert (run.stdout, run.stderr) == ("torch\n", "")


@pytest.mark.nightly
def test_a_failing_sitecustomize_fails_as_ever(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import a_module_that_is_missing\n")
    script = _script(tmp_path, _starting("import torch; print(torch.compile.__module__)"))
    run = _run("run", "--quiet", script, PYTHONPATH=str(tmp_path))
    assert run.stdout == "fxstack.compile\n"
    assert "a_module_that_is_missing" in run.stderr
