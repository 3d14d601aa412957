"""The checks of ``nox -s lint`` run where none of the packages, and no torch, is installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
_LINT = (ROOT / "noxfile.py").read_text().partition("def lint(")[2].partition("@nox.session")[0]
CHECKS = sorted(set(re.findall(r'"(tools/\w+\.py)", "--check"', _LINT)) - {"tools/import_arrows.py"})
"""But for what needs import-linter, which the session installs."""


def test_checks_are_found() -> None:
    assert "tools/graph_breaks_page.py" in CHECKS


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_needs_nothing_but_python(check: str) -> None:
    ran = subprocess.run([sys.executable, "-S", check, "--check"], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
