"""Scripts under ``fxstack run`` and ``explain``, each in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from python_processes import run as run_python

PROGRAM = """
import sys, torch

def noisy(x):
    print("noise")
    return x * 2

@torch.compile
def program(x):
    return torch.relu(noisy(x + 1))

for size in (4, 7):
    program(torch.ones(size))
"""
SURROUNDINGS = """
import sys, json, pickle
class Held: pass
import __main__
print(json.dumps([sys.argv, __name__, __file__, __package__, __doc__, sys.path[0], __main__.Held is Held,
    pickle.loads(pickle.dumps(Held())).__class__ is Held, sorted(name for name in globals() if name.startswith("__"))]))
"""


def _fxstack(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return run_python("-m", "fxstack", *arguments, cwd=cwd)


def _started(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """As a user starts it."""
    command = [sys.executable, "-m", "fxstack", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False, timeout=300)


def _script(folder: Path, text: str) -> Path:
    file = folder / "script.py"
    file.write_text(text)
    return file


def test_calls_of_torch_compile_come_here_and_a_summary_follows(tmp_path: Path) -> None:
    run = _started("run", _script(tmp_path, PROGRAM))
    assert (run.returncode, run.stdout) == (0, "noise\nnoise\n")
    assert "fxstack: 4 compilations" in run.stderr
    assert "graph break [CAP236], 2 times: print() writes to the terminal" in run.stderr
    assert f"at {tmp_path}/script.py:5 in noisy" in run.stderr
    assert "was sizes [4], is [7]" in run.stderr
    assert "\x1b[" not in run.stderr


def test_json_is_the_last_line_of_the_output(tmp_path: Path) -> None:
    run = _fxstack("run", "--json", _script(tmp_path, PROGRAM))
    *printed, last = run.stdout.splitlines()
    record = json.loads(last)
    assert printed == ["noise", "noise"]
    assert [stop["code"] for stop in record["breaks"]] == ["CAP236", "CAP236"]
    assert {graph["dialect"] for graph in record["graphs"]} == {"torch", "aten", "prims"}
    assert record["sources"][f"{tmp_path}/script.py"]["5"] == '    print("noise")'
    assert run.stderr == ""


def test_a_script_sees_what_python_would_show_it(tmp_path: Path) -> None:
    script = _script(tmp_path, SURROUNDINGS)
    arguments = ["--json", "-x", "--", "a b"]
    plain = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=True)
    for separator in ([], ["--"]):
        run = _started("run", "--quiet", script, *separator, *arguments)
        assert run.stderr == ""
        assert json.loads(run.stdout) == json.loads(plain.stdout)


def test_a_module_is_run_as_by_python(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "part.py").write_text(
        "import sys; print(__name__, __package__, sys.argv[1:]); sys.exit(4)"
    )
    run = _started("run", "-m", "package.part", "--flag", cwd=tmp_path)
    assert (run.returncode, run.stdout) == (4, "__main__ package ['--flag']\n")


@pytest.mark.parametrize(
    ("text", "status", "shown"),
    [
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit('words')", 1, "words\n"),
        ("raise SystemExit", 0, ""),
    ],
)
def test_the_scripts_exit_status_is_passed_on(tmp_path: Path, text: str, status: int, shown: str) -> None:
    run = _fxstack("run", "--quiet", _script(tmp_path, text))
    assert (run.returncode, run.stderr) == (status, shown)


def test_an_exception_is_shown_as_by_python(tmp_path: Path) -> None:
    script = _script(tmp_path, "def inner():\n    raise ValueError('mine')\ninner()\n")
    plain = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    run = _started("run", "--quiet", script)
    assert (run.returncode, run.stderr) == (plain.returncode, plain.stderr)
    broken = _script(tmp_path, "def inner(:\n")
    plain = subprocess.run([sys.executable, broken], capture_output=True, text=True, check=False)
    run = _started("run", "--quiet", broken)
    assert (run.returncode, run.stderr) == (plain.returncode, plain.stderr)


def test_an_interrupt_ends_it_as_it_ends_python(tmp_path: Path) -> None:
    script = _script(
        tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(60)\n"
    )
    run = _fxstack("run", script)
    assert run.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in run.stderr


def test_what_runs_at_exit_is_compiled_too(tmp_path: Path) -> None:
    text = "import atexit, sys, torch\natexit.register(lambda: print(torch.compile.__module__))\n"
    run = _fxstack("run", "--quiet", _script(tmp_path, text))
    assert run.stdout == "fxstack.compile\n"


def test_a_script_that_compiles_nothing_is_told_so(tmp_path: Path) -> None:
    run = _fxstack("run", _script(tmp_path, "print(1)"))
    assert run.stdout == "1\n"
    assert "nothing was compiled" in run.stderr


def test_explain_prints_graphs_breaks_guards_and_recompilations(tmp_path: Path) -> None:
    script = _script(tmp_path, PROGRAM)
    run = _fxstack("explain", script)
    assert run.stdout.startswith("noise\nnoise\n4 compilations in ")
    assert run.stdout.index("\ngraph break [CAP236]") < run.stdout.index("\n== 0. ")
    assert "program, version 2: compiled" in run.stdout
    assert "because x: was sizes [4], is [7]" in run.stdout
    assert "%add: float32[4] = operator.add(%x, 1)" in run.stdout
    assert "to do: print, log and do file work outside of the compiled function" in run.stdout
    assert " guards, checked in " in run.stdout
    assert "tensor_match" not in run.stdout
    assert "tensor_match" in _fxstack("explain", "--guards", script).stdout
    kept = tmp_path / "kept.json"
    assert _fxstack("explain", "--json", "-o", kept, script).stdout == "noise\nnoise\n"
    assert len(json.loads(kept.read_text())["frames"]) == 4


def test_a_fresh_cache_is_used_and_removed(tmp_path: Path) -> None:
    script = _script(tmp_path, PROGRAM)
    first, second, fresh = (
        json.loads(_fxstack("run", *options, "--json", script).stdout.splitlines()[-1])
        for options in ([], [], ["--fresh"])
    )
    hits = [
        [entry["hit"] for entry in one["cache"] if entry["what"] == "program"]
        for one in (first, second, fresh)
    ]
    assert hits == [[False] * 4, [True] * 4, [False] * 4]
    assert second["launches"] == []


@pytest.mark.nightly
def test_report_writes_one_page_of_a_script_or_of_a_record(tmp_path: Path) -> None:
    script, page, kept = (
        _script(tmp_path, PROGRAM + "sys.exit(5)\n"),
        tmp_path / "page.html",
        tmp_path / "kept.json",
    )
    run = _fxstack("report", "-o", page, script)
    assert (run.returncode, run.stdout) == (5, "noise\nnoise\n")
    assert str(page) in run.stderr
    assert "print() writes to the terminal" in page.read_text()
    assert _fxstack("explain", "--json", "-o", kept, script).returncode == 5
    page.unlink()
    again = _fxstack("report", "--json", "-o", page, kept)
    assert json.loads(again.stdout) == {"page": str(page), "processes": [], "status": 0}
    assert "print() writes to the terminal" in page.read_text()
    kept.write_text("{}")
    refused = _fxstack("report", kept)
    assert refused.returncode == 2
    assert "is not a record of this version" in refused.stderr


def test_what_there_is_to_see_comes_with_the_commands_that_show_it(tmp_path: Path) -> None:
    """One that compiles again; the words of the command line are those that were given."""
    script = tmp_path / "my script.py"
    script.write_text(PROGRAM)
    done = _fxstack("run", script.name, "a b", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "fxstack explain 'my script.py' 'a b'" in done.stderr
    assert "fxstack report --fresh 'my script.py' 'a b'" in done.stderr
    script.write_text("import torch; torch.compile(lambda x: x + 1)(torch.ones(2))")
    assert "fxstack explain" not in _fxstack("run", script.name, cwd=tmp_path).stderr


def test_torch_compile_is_put_back_before_the_interpreter_ends(tmp_path: Path) -> None:
    """Functions that a script registers see it replaced; nothing is printed when modules are taken apart."""
    text = "import atexit, torch\natexit.register(lambda: print(torch.compile.__module__))\n"
    cycle = "import sys\nsys.modules['kept'] = torch.cycle = sys.modules['__main__']\n"
    run = _started("run", _script(tmp_path, text + cycle))
    assert (run.returncode, run.stdout) == (0, "fxstack.compile\n")
    assert "Exception ignored" not in run.stderr


def test_the_nearest_command_is_told() -> None:
    run = _fxstack("explian", "x.py")
    assert run.returncode == 2
    assert "Did you mean 'explain'?" in run.stderr


@pytest.mark.nightly
@pytest.mark.skipif(os.name != "posix", reason="names of files are bytes on POSIX systems")
def test_names_of_files_are_bytes(tmp_path: Path) -> None:
    """A folder whose name is not ASCII, where the locale says that names are: Python has stand-ins for the bytes."""
    folder = tmp_path / "größe"
    folder.mkdir()
    surroundings = os.environ | {
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
        "FXSTACK_ON_INTERNAL_ERROR": "raise",
        "FXSTACK_CACHE_DIR": str(folder / "cache"),
    }
    script = _script(folder, PROGRAM)
    for command in ("run", "explain", "report"):
        arguments = [sys.executable, "-m", "fxstack", command, str(script)]
        done = subprocess.run(
            arguments, capture_output=True, env=surroundings, cwd=folder, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr
        assert b"defect" not in done.stderr
    assert "fxstack-report" in str(next(folder.glob("*.html")))


def test_a_module_that_is_not_there_is_told_as_by_python(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "needs.py").write_text("import not_there\n")
    for module in ("not_there", "package", "package.not_there", "not_there.part"):
        plain = subprocess.run(
            [sys.executable, "-m", module], capture_output=True, text=True, cwd=tmp_path, check=False
        )
        run = _fxstack("run", "--quiet", "-m", module, cwd=tmp_path)
        assert run.returncode == plain.returncode == 1
        assert run.stderr.splitlines()[0].startswith(plain.stderr.strip().partition(" (")[0]), module
    run = _fxstack("run", "--quiet", "-m", "needs", cwd=tmp_path)
    assert "import not_there" in run.stderr
    assert "ModuleNotFoundError" in run.stderr
