"""Targets of several kinds, and what is written for GPUs, as far as it can be told without one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import fxstack
from fxstack.artifacts import contract, devices
from fxstack_artifact import ArtifactError, _native
from fxstack_artifact.container.reading import open_archive
from inductor_codegen.testing import on_gpu_alike

X = torch.randn(3, 8, generator=torch.Generator().manual_seed(0))


def mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval()


def test_targets_of_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can be told without a GPU: of which kind targets must be, and what is not made for one."""

    def refused(*words: str, **arguments: Any) -> None:
        with pytest.raises(fxstack.ExportError) as caught:
            fxstack.aot_compile(path=tmp_path / "m.fxa", **arguments)
        assert all(word in str(caught.value) for word in words), caught.value

    model = mlp()
    refused("FXS509", "sm_90 of a model on a CPU", model=model, args=(X,), target="sm_90")
    on_cpu = fxstack.export(model, (X,))
    kinds = iter([True, False])
    monkeypatch.setattr(contract.Contract, "is_on_gpu", property(lambda _: next(kinds)))
    refused(
        "FXS509", "here is on a GPU and there is not", model={"here": on_cpu, "there": on_cpu}, target="sm_90"
    )
    monkeypatch.setattr(contract.Contract, "is_on_gpu", True)
    refused("FXS509", "x86-64-v3 of a model on a GPU", model=on_cpu, target=("sm_90", "x86-64-v3"))


def test_a_training_artifact_for_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written of a model that trains on a GPU, of graphs that only say that they lie on one."""
    pytest.importorskip("triton")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    exported = fxstack.export(mlp().train(), (X,), training=True)
    graphs = exported.graphs
    assert graphs.backward is not None
    assert graphs.plan.backward is not None
    for graph in (graphs.forward, graphs.backward):
        on_gpu_alike(graph)
    gpu = torch.device("cuda", 0)
    tangents = tuple(replace(t, spec=replace(t.spec, device=gpu)) for t in graphs.plan.backward.tangents)
    plan = replace(graphs.plan, backward=replace(graphs.plan.backward, tangents=tangents))
    exported = replace(exported, graphs=replace(graphs, plan=plan))
    monkeypatch.setattr(contract.Contract, "is_on_gpu", True)
    path = fxstack.aot_compile(exported, path=tmp_path / "m.fxa", target=("sm_80", "sm_90"))
    found = fxstack.inspect(path)
    assert found["targets"] == ["sm_90", "sm_80"]
    objects = {f"native/{graph}.{arch}.so" for graph in ("0", "0b") for arch in ("sm_80", "sm_90")}
    assert objects <= set(found["contents"])
    archive = open_archive(path)
    program = json.loads(archive.contents(lambda name: name == "program.json")["program.json"])
    (arriving,) = program["entry_points"]["forward"]["backward"]["tangents"]
    assert arriving["device"] == "cuda:0"
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(ArtifactError, match="FXA115"):
        fxstack.load(path)


@pytest.fixture
def first_is_on_gpu(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The first export whose contract is asked for is said to lie on a GPU, with its graph. It is in this list."""
    pytest.importorskip("triton")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    found: list[Any] = []

    def described(exported: Any) -> contract.Contract:
        made = contract.contract_of(exported)
        if not found:
            found.append(exported)
            on_gpu_alike(exported.graphs.forward)
        if exported is found[0]:
            made.leaves = [replace(spec, device=torch.device("cuda", 0)) for spec in made.leaves if spec]
        return made

    monkeypatch.setattr(devices, "contract_of", described)
    return found


def test_a_file_for_both(tmp_path: Path, first_is_on_gpu: list[Any]) -> None:
    """A program for each device, and weights once: the model is copied to the other device, and exported there."""
    model, level = mlp(), _native.cpu_levels()[0]
    path = fxstack.aot_compile(model, (X,), path=tmp_path / "both.fxa", target=("sm_90", level))
    assert first_is_on_gpu[0].model is model
    found = fxstack.inspect(path)
    assert found["format"] == [2, 2]
    assert found["targets"] == [level, "sm_90"]
    assert {f"native/0.{level}.so", "native/0.sm_90.so", "program.gpu.json"} <= set(found["contents"])
    alone = fxstack.inspect(fxstack.aot_compile(model, (X,), path=tmp_path / "one.fxa"))
    assert alone["contents"]["weights.safetensors"] == found["contents"]["weights.safetensors"]
    assert "on_gpu" not in alone
    assert found["on_gpu"]["constants"] == found["constants"] == alone["constants"]
    with torch.no_grad():
        torch.testing.assert_close(fxstack.load(path, device="cpu")(X), model(X))


def test_exports_for_both(
    tmp_path: Path, first_is_on_gpu: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each entry point has one on each device; weights of one name that differ are both in the file."""
    model, other, level = mlp(), mlp(), _native.cpu_levels()[0]
    with torch.no_grad():
        other[0].weight.add_(1)
    on_gpu, on_cpu = fxstack.export(model, (X,)), fxstack.export(other, (X,))
    devices.contract_of(on_gpu)
    exports = {"forward": [on_cpu, on_gpu]}
    path = fxstack.aot_compile(exports, path=tmp_path / "both.fxa", target=("sm_90", level))
    found = fxstack.inspect(path)
    assert found["constants"] == found["on_gpu"]["constants"]
    size = sum(parameter.numel() for parameter in model.parameters()) + model[0].weight.numel()
    assert 0 < found["contents"]["weights.safetensors"] - 4 * size < 1024
    loaded = fxstack.load(path, device="cpu")
    assert torch.equal(loaded.state_dict()["0.weight"], other[0].weight)

    def refused(*words: str, **arguments: Any) -> None:
        with pytest.raises(fxstack.ExportError) as caught:
            fxstack.aot_compile(path=tmp_path / "m.fxa", **arguments)
        assert all(word in str(caught.value) for word in ("FXS509", *words)), caught.value

    refused("no target of a model on both is for a GPU", model=exports, target=level)
    refused("f has two exports on one device", model={"f": [on_cpu, on_cpu]}, target=level)
    refused("f is on a GPU and g is not", model={"f": [on_cpu, on_gpu], "g": on_cpu})
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    refused("there is no GPU", model=model, args=(X,), target=(level, "sm_90"))
