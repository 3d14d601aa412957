"""Lets the torch-free half be tested without torch: fx_interface's own ``__init__`` needs it, its sources do not."""

from __future__ import annotations

import sys
import types
from importlib.util import find_spec
from pathlib import Path

if find_spec("torch") is None:
    spec = find_spec("fx_interface")
    assert spec is not None
    assert spec.origin is not None
    package = types.ModuleType("fx_interface")
    package.__path__ = [str(Path(spec.origin).parent)]
    sys.modules["fx_interface"] = package
    collect_ignore = [
        "kinds/test_tensor.py",
        "kinds/test_state.py",
        "test_build_modules.py",
        "test_calibration.py",
    ]
