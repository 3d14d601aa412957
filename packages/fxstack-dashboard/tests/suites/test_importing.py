"""torchvision whose library does not load, and one that fails in another way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LOOKS = """
import torch

@torch.library.register_fake("torchvision::nms")
def nms(dets, scores, threshold):
    return dets
"""
IMPORTS = """
from fxstack_dashboard.suites.importing import import_torchvision
import_torchvision()
import torchvision, torch
print("imported")
try:
    torch.ops.torchvision.nms(torch.ones(1, 4), torch.ones(1), 0.5)
except NotImplementedError as error:
    print("no kernel")
"""


def _imported(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "torchvision").mkdir()
    (folder / "torchvision" / "__init__.py").write_text(text)
    program = f"import sys\nsys.path.insert(0, {str(folder)!r})\n{IMPORTS}"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_its_operators_are_declared_where_its_library_does_not_load(tmp_path: Path) -> None:
    done = _imported(tmp_path, LOOKS)
    assert done.stdout.split("\n")[:2] == ["imported", "no kernel"], done.stderr


@pytest.mark.parametrize("text", ["raise RuntimeError('broken')", "import no_such_module"])
def test_what_else_goes_wrong_is_raised(tmp_path: Path, text: str) -> None:
    done = _imported(tmp_path, text)
    assert done.returncode == 1
    assert "broken" in done.stderr or "no_such_module" in done.stderr
