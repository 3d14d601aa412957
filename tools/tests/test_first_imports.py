"""Modules are imported first, each in a process of its own, and those that cannot be are told."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parent.parent


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=500, check=False
    )


def test_modules_of_this_repository() -> None:
    """A small share of them; `nox -s first-imports` takes all."""
    ended = _run(str(TOOLS / "first_imports.py"), "--every", "40")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert " modules, 0 cannot be imported first" in ended.stdout


@pytest.mark.parametrize(
    ("text", "told", "missing"),
    [
        ("import sys\nsys.modules['one_imported_before']\n", "KeyError: 'one_imported_before'", None),
        ("import one_that_nobody_has\n", "No module named 'one_that_nobody_has'", "one_that_nobody_has"),
        ("import os\nos._exit(3)\n", "the process ended", None),
    ],
)
def test_a_module_that_fails(tmp_path: Path, text: str, told: str, missing: str | None) -> None:
    failure = _import_first(tmp_path, text)
    assert told in failure["text"]
    assert failure["missing"] == missing


def test_a_module_that_needs_no_other(tmp_path: Path) -> None:
    assert _import_first(tmp_path, "import json\n") is None


def _import_first(folder: Path, text: str) -> Any:
    (folder / "imported_first.py").write_text(text)
    paths = f"import sys; sys.path[:0] = [{str(TOOLS)!r}, {str(folder)!r}]"
    use = "import dataclasses, json; from first_imports import import_first"
    show = "found = import_first('imported_first'); print(json.dumps(found and dataclasses.asdict(found)))"
    ended = _run("-c", f"{paths}; {use}; {show}")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)
