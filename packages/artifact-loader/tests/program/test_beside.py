"""Weights beside an artifact: which file is meant. That contents are checked is tested where such files are written
(``packages/fxstack/tests/artifacts/test_compiling.py``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from fxstack_artifact import ArtifactError
from fxstack_artifact.program.beside import weights_beside


@pytest.mark.parametrize("name", ["../w", "/etc/hostname", "a/b", "", ".", ".."])
def test_only_a_file_of_the_same_folder_is_read(name: str, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="FXA108"):
        weights_beside(tmp_path / "m.fxa", {"file": name, "size": 0, "blake3": []}, [])
