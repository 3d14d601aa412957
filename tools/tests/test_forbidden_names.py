"""No package knows what a program is tested with, and the check sees each way to name a test library."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import forbidden_names


def test_no_package_names_a_test_library() -> None:
    assert forbidden_names.violations() == []


@pytest.mark.parametrize(
    "source",
    [
        "import pytest",
        "from _pytest.logging import LogCaptureHandler",
        "import unittest.mock as mock",
        "from torch.testing import assert_close",
        "import torch\n\ntorch.testing.assert_close(1, 1)",
        "root in ('builtins', '_pytest')",
        "name.startswith('torch.testing.')",
    ],
)
def test_each_way_of_naming_is_found(source: str) -> None:
    assert list(forbidden_names.names(source))


@pytest.mark.parametrize(
    "source",
    ["import testing", "from torch import test", "'pytester'", "# pytest", "torch.tested.pytest_like"],
)
def test_other_names_are_allowed(source: str) -> None:
    assert not list(forbidden_names.names(source))
