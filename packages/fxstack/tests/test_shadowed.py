"""A module of the program that has the name of one of the stack's packages is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import fxstack.shadowed


@pytest.mark.parametrize("name", ["fx_guards", "fx_interface"])
def test_a_file_beside_the_program(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text("raise SystemExit('the file of the program ran')\n")
    (tmp_path / "program.py").write_text("import fxstack\n")
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"[FXS104] {tmp_path / name}.py is imported in place of the package '{name}'" in done.stderr


def test_the_packages_themselves_are_in_nobodys_way() -> None:
    fxstack.shadowed.check_not_shadowed()
