"""Programs of statements drawn at random do what they do in eager.

``DYNAMO_CAPTURE_FUZZ=n`` draws n programs instead of a few; ``DYNAMO_CAPTURE_FUZZ_SEED`` draws others.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COUNT = os.environ.get("DYNAMO_CAPTURE_FUZZ", "60")
SEED = os.environ.get("DYNAMO_CAPTURE_FUZZ_SEED", "1")


def test_no_program_differs():
    script = Path(__file__).with_name("statements.py")
    done = subprocess.run(
        [sys.executable, str(script), COUNT, "--seed", SEED, "--show"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
