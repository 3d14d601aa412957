"""What the installed package must do at least; ``nox -s release-check`` runs it outside of the repository."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def command(*arguments: str) -> Any:
    """What a command of the dashboard prints with ``--json``."""
    program = Path(sys.executable).with_name("fxstack")
    done = subprocess.run(
        [str(program), "dashboard", *arguments, "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def main() -> None:
    """One row is measured, and pages are written of it."""
    with tempfile.TemporaryDirectory() as folder:
        database = ("--database", str(Path(folder) / "results.db"))
        row = ("--model", "gated", "--phase", "inference", "--backend", "fxstack:aot_eager", "--rounds", "3")
        made = command("run", *row, *database)
        assert [one["status"] for one in made["rows"]] == ["pass"], made
        assert command("site", "-o", str(Path(folder) / "site"), *database)["pages"] == 5
        assert (Path(folder) / "site" / "index.html").stat().st_size > 1000


if __name__ == "__main__":
    main()
