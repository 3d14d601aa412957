"""Programs drawn at random do what they do in eager: each adversary of this folder, on some programs.

``ADVERSARY_PROGRAMS`` and ``ADVERSARY_SEED`` choose how many and which; ``nox -s fuzz`` runs many new ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from driver import run_in_test

FOLDER = Path(__file__).parent
RUNS: tuple[tuple[str, int, str], ...] = ()
"""An adversary, how many of its programs run in CI, and the backends."""


@pytest.mark.parametrize(("name", "count", "backends"), RUNS)
@pytest.mark.timeout(1200)
def test_no_program_differs(name, count, backends):
    run_in_test(FOLDER / f"{name}.py", count, backend=backends)
