"""What a machine runs, and how an artifact for GPUs is refused where there is none, or another one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import fxstack_artifact
from fxstack_artifact import ArtifactError, load
from fxstack_artifact.container.targets import gpu_targets


def pretend(monkeypatch: pytest.MonkeyPatch, major: int, minor: int) -> None:
    """A GPU of this architecture, as far as torch says."""
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (major, minor))


@pytest.mark.parametrize(
    ("major", "minor", "runs"),
    [(8, 6, ["86", "85", "84", "83", "82", "81", "80"]), (8, 0, ["80"]), (9, 0, ["90"]), (10, 3, ["103"])],
)
def test_architectures(monkeypatch: pytest.MonkeyPatch, major: int, minor: int, runs: list[str]) -> None:
    """Kernels for 9.0 and later use what no other architecture has."""
    pretend(monkeypatch, major, minor)
    assert gpu_targets() == [f"sm_{number}" for number in runs]


def test_no_gpu(make: Any, monkeypatch: pytest.MonkeyPatch, loaded_mark: Any) -> None:
    path = make(targets=("sm_90", "sm_80"))
    assert fxstack_artifact.inspect(path)["targets"] == ["sm_90", "sm_80"]
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(ArtifactError, match=r"FXA115.*built without CUDA"):
        load(path)

    def no_driver() -> None:
        raise RuntimeError("Found no NVIDIA driver on your system.\nMore.")

    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "init", no_driver)
    with pytest.raises(ArtifactError, match=r"FXA115.*no NVIDIA driver on your system\.\n  to do: use"):
        load(path)
    assert not loaded_mark.exists()


def test_another_gpu(make: Any, monkeypatch: pytest.MonkeyPatch, loaded_mark: Any) -> None:
    pretend(monkeypatch, 7, 5)
    with pytest.raises(ArtifactError, match=r"FXA105.*for sm_90, sm_80; this machine runs sm_75"):
        load(make(targets=("sm_90", "sm_80")))
    assert not loaded_mark.exists()
