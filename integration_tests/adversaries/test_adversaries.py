"""Programs drawn at random do what they do in eager: each adversary of this folder, on some programs.

``nox -s fuzz`` runs many new ones (``driver.run_in_test`` says how).
"""

from __future__ import annotations

import pytest

RUNS: tuple[tuple[str, int, str], ...] = (
    ("accuracy", 5, "inductor"),
    ("changes", 260, "eager"),
    ("changes", 40, "aot_eager"),
    ("changes", 10, "inductor"),
    ("objects", 400, "eager"),
    ("members", 400, "eager"),
    ("tensors", 400, "eager"),
    ("tensors", 300, "aot_eager"),
    ("tensors", 25, "inductor"),
    ("asked", 140, "eager"),
    ("asked", 40, "aot_eager"),
    ("parts", 100, "eager"),
    ("parts", 40, "aot_eager"),
    ("statements", 160, "eager"),
    ("statements", 60, "aot_eager"),
    ("statements", 8, "inductor"),
    ("gradients", 120, "eager"),
    ("gradients", 140, "aot_eager"),
    ("gradient_nodes", 100, "eager"),
    ("gradient_nodes", 100, "aot_eager"),
    ("gradient_values", 300, "aot_eager"),
    ("second_backwards", 60, "eager"),
    ("second_backwards", 300, "aot_eager"),
    ("second_backwards", 10, "inductor"),
    ("documented", 8, "eager"),
    ("masked_branches", 60, "eager"),
    ("masked_branches", 40, "aot_eager"),
    ("masked_branches", 8, "inductor"),
    ("equal_modules", 60, "eager"),
    ("equal_modules", 20, "aot_eager"),
    ("own_code", 80, "eager"),
    ("called_back", 80, "eager"),
    ("called_back", 20, "aot_eager"),
    ("comprehensions", 60, "eager"),
    ("comprehensions", 15, "aot_eager"),
    ("interrupts", 30, "eager"),
    ("training", 40, "eager"),
    ("training", 40, "aot_eager"),
)
"""An adversary, how many of its programs run in CI, and the backends."""


@pytest.mark.parametrize(("name", "count", "backend"), RUNS)
@pytest.mark.timeout(1400)
def test_no_program_differs(wait_for, name, count, backend):
    differing, text = wait_for(name, count, backend)
    print(text.splitlines()[-1] if text else "no output")
    assert not differing, text
