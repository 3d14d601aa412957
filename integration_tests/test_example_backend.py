"""The example backend is held to the conformance suite that any third party's is."""

from __future__ import annotations

import sys
from pathlib import Path

from fx_interface.conformance import BackendConformance

sys.path.insert(0, str(Path(__file__).parent / "example_backend" / "src"))

from example_backend import StraightLine


class TestExampleBackend(BackendConformance):
    """Every conformance test, run on the example backend."""

    backend = StraightLine()
