"""The bytecode layer and the hook import without torch, and nothing but the standard library."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dynamo_capture


@pytest.mark.parametrize(
    "module",
    [
        "dynamo_capture",
        "dynamo_capture.bytecode",
        "dynamo_capture.hook.frame_hook",
        "dynamo_capture.interpreter.opcodes",
    ],
)
def test_no_torch(module: str) -> None:
    source = str(dynamo_capture.__file__).rpartition("/dynamo_capture/")[0]
    program = (
        f"import sys; sys.path.insert(0, {source!r}); import {module}; "
        "foreign = [m for m in sys.modules if m.partition('.')[0] in ('torch', 'fx_guards', 'fx_interface')]; "
        "assert not foreign, foreign"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
