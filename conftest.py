"""What the tests of all packages run under."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True, scope="module")
def modules_are_frozen() -> None:
    """Modules and tests, a million objects, live to the end: a collection that a test asks for does not look at them
    again, which would take it half a second. A test that thaws them has them thawed until the next file."""
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
