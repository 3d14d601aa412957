"""Any expression around a tensor gives what eager gives, or raises what eager raises.

``DYNAMO_CAPTURE_FUZZ=n`` draws n expressions instead of a few; ``DYNAMO_CAPTURE_FUZZ_SEED`` draws others.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COUNT = os.environ.get("DYNAMO_CAPTURE_FUZZ", "250")
SEED = os.environ.get("DYNAMO_CAPTURE_FUZZ_SEED", "6")


def test_no_expression_differs():
    script = Path(__file__).with_name("expressions.py")
    done = subprocess.run(
        [sys.executable, str(script), COUNT, "--seed", SEED], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
