"""The translator meets any Python function there is: it captures it, breaks the graph, or leaves it to Python.

It never fails with an error of its own, and does nothing to the outside. ``DYNAMO_CAPTURE_FUZZ=n`` draws n functions
instead of a few hundred; ``DYNAMO_CAPTURE_FUZZ_SEED`` draws others.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COUNT = os.environ.get("DYNAMO_CAPTURE_FUZZ", "400")
SEED = os.environ.get("DYNAMO_CAPTURE_FUZZ_SEED", "0")


@pytest.mark.parametrize("origin", ["standard", "torch"])
def test_no_function_makes_the_translator_fail(origin):
    script = Path(__file__).with_name("functions.py")
    done = subprocess.run(
        [sys.executable, str(script), origin, COUNT, "--seed", SEED],
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
