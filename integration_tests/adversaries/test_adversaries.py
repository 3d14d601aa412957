"""Programs drawn at random do what they do in eager: each adversary of this folder, on some programs.

``nox -s fuzz`` runs many new ones (``driver.run_in_test`` says how).
"""

from __future__ import annotations

import pytest

RUNS: tuple[tuple[str, int, str], ...] = (
    ("accuracy", 40, "inductor"),
    ("changes", 1500, "eager"),
    ("changes", 300, "aot_eager"),
    ("changes", 30, "inductor"),
    ("objects", 400, "eager"),
    ("tensors", 1000, "eager"),
    ("tensors", 1000, "aot_eager"),
    ("tensors", 60, "inductor"),
    ("statements", 400, "eager"),
    ("statements", 150, "aot_eager"),
    ("statements", 25, "inductor"),
    ("gradients", 300, "eager"),
    ("gradient_nodes", 300, "eager"),
    ("gradient_values", 500, "aot_eager"),
)
"""An adversary, how many of its programs run in CI, and the backends."""


@pytest.mark.parametrize(("name", "count", "backend"), RUNS)
@pytest.mark.timeout(1400)
def test_no_program_differs(wait_for, name, count, backend):
    wait_for(name, count, backend)
