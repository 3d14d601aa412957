"""What a machine runs, and how an artifact for GPUs is refused where there is none, or another one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import fxstack_artifact
from fxstack_artifact import ArtifactError, load
from fxstack_artifact.container.hashing import CHECKSUM
from fxstack_artifact.container.manifest import version_for
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


def test_a_file_for_both(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a program for each: the GPU's where one can be used, unless the caller says otherwise."""
    x, targets = torch.ones(2, 3), ("here", "sm_90")
    there = {"program.gpu.json": b'{"constants": [], "entry_points": {}}', "native/0.sm_90.so": b""}
    path = make(more=there, targets=targets, version=version_for(CHECKSUM, targets))
    found = fxstack_artifact.inspect(path)
    assert found["format"] == [2, 2]
    assert list(found["entry_points"]) == ["forward"]
    assert found["on_gpu"] == {"entry_points": {}, "constants": []}
    monkeypatch.setattr(torch.version, "cuda", None)
    for given in ({}, {"device": "cpu"}, {"device": torch.device("cpu")}):
        assert load(path, **given).target == "here"
        assert load(path, **given)(x)["n"] == 3
    with pytest.raises(ArtifactError, match="FXA115"):
        load(path, device="cuda")
    pretend(monkeypatch, 9, 0)
    for given in ({}, {"device": "cuda"}, {"device": "cuda:0"}):
        with pytest.raises(ArtifactError, match=r"FXA108.*there is no entry point"):  # as its program says
            load(path, **given)
    assert load(path, device="cpu")(x)["n"] == 3
    pretend(monkeypatch, 7, 5)
    with pytest.raises(ArtifactError, match=r"(?s)FXA105.*GPU 0 is sm_75.*device='cpu'"):
        load(path)
    with pytest.raises(ArtifactError, match="FXA105"):
        load(path, device="cuda")
    assert load(path, device="cpu")(x)["n"] == 3


@pytest.mark.parametrize("device", ["cuda:1", "meta", "nothing", 1.5])
def test_a_device_that_it_is_not_for(make: Any, device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, 9, 0)
    for targets, other in ((("here",), "cuda"), (("sm_90",), "cpu")):
        path = make(targets=targets)
        for asked in (device, other):
            with pytest.raises(ArtifactError, match="FXA116"):
                load(path, device=asked)


def test_a_file_for_both_lacks_a_program(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, 9, 0)
    with pytest.raises(ArtifactError, match="FXA108"):
        load(make(targets=("here", "sm_90")))


def test_another_gpu(make: Any, monkeypatch: pytest.MonkeyPatch, loaded_mark: Any) -> None:
    pretend(monkeypatch, 7, 5)
    with pytest.raises(ArtifactError, match=r"FXA105.*for sm_90, sm_80; this machine runs sm_75"):
        load(make(targets=("sm_90", "sm_80")))
    assert not loaded_mark.exists()
