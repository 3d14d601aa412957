"""A file is loaded and called, or refused with a code."""

from __future__ import annotations

import gc
import hashlib
import io
import json
import os
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

import fxstack_artifact
from fxstack_artifact import ArtifactError, ContractError, load

W = torch.tensor([1.0, 2.0, 3.0])


def test_an_artifact_runs(make: Any) -> None:
    artifact = load(make())
    assert artifact.entry_points == ("forward",)
    assert artifact.target == "here"
    for n in (2, 5, 8):
        x = torch.randn(n, 3)
        for result in (artifact(x), artifact["forward"](x=x)):
            assert torch.equal(result["y"], x + W)
            assert result["n"] == n + 1
            assert result["first"].data_ptr() == result["y"].data_ptr()
    assert torch.equal(artifact.state_dict()["w"], W)


def test_weights_are_the_process_own(make: Any) -> None:
    path = make()
    before = path.read_bytes()
    one, other = load(path), load(path, copy=True)
    one.state_dict()["w"].add_(1)
    x = torch.zeros(2, 3)
    assert torch.equal(one(x)["y"][0], W + 1)
    assert torch.equal(other(x)["y"][0], W)
    assert path.read_bytes() == before


def test_weights_may_be_passed(make: Any) -> None:
    weight = torch.tensor([5.0, 6.0, 7.0])
    artifact = load(make(), weights={"w": weight, "unused": torch.ones(1)})
    x = torch.zeros(2, 3)
    assert torch.equal(artifact(x)["y"][0], weight)
    weight.add_(1)
    assert torch.equal(artifact(x)["y"][0], weight)
    strided = torch.arange(6.0)[::2]
    assert torch.equal(load(make(), weights={"w": strided})(x)["y"][0], strided)
    for wrong in (torch.ones(4), torch.ones(3, dtype=torch.int64)):
        with pytest.raises(ArtifactError, match="FXA201"):
            load(make(), weights={"w": wrong})


def test_several_may_be_loaded_and_dropped(make: Any) -> None:
    path = make()
    x = torch.ones(2, 3)
    open_before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(20):
        assert torch.equal(load(path)(x)["y"], x + W)
    kept = [load(path) for _ in range(5)]
    assert all(torch.equal(one(x)["y"], x + W) for one in kept)
    del kept
    gc.collect()
    if open_before:
        assert len(os.listdir("/proc/self/fd")) <= open_before + 2


def test_threads_share_one(make: Any) -> None:
    artifact = load(make())
    wrong = []

    def work(seed: int) -> None:
        for i in range(200):
            x = torch.full((2, 3), float(seed * 1000 + i))
            if not torch.equal(artifact(x)["y"], x + W):
                wrong.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    "argument, code, words",
    [
        (torch.zeros(1, 3), "FXA305", "x has in dimension 0 the size 1, the artifact takes 2 to 8 (batch)"),
        (torch.zeros(9, 3), "FXA305", "the size 9"),
        (torch.zeros(4, 2), "FXA305", "x has size 2 in dimension 1, the artifact takes 3"),
        (torch.zeros(4), "FXA305", "x has 1 dimension, the artifact takes 2"),
        (torch.zeros(3, 4).T, "FXA306", "x has stride 1 in dimension 0, the artifact takes 3"),
        (torch.zeros(4, 3).double(), "FXA303", "x has dtype float64, the artifact takes float32"),
        (torch.zeros(7, 3), "FXA307", "7 != 7 does not hold; here batch=7 (size 0 of x)"),
        (torch.zeros(4, 3, device="meta"), "FXA304", "x is on another device"),
        (torch.zeros(4, 3).to_sparse(), "FXA310", "x is not a strided tensor"),
        (torch.zeros(4, 3, dtype=torch.complex64).conj().imag, "FXA310", "lazy conjugate or negative"),
        (torch.zeros(4, 3, requires_grad=True), "FXA308", "x requires grad"),
        ([1.0], "FXA302", "x is of type list, the artifact takes a torch.Tensor"),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, argument: Any, code: str, words: str) -> None:
    artifact = load(make())
    with pytest.raises(ContractError) as caught:
        artifact(argument)
    assert caught.value.code == code
    assert words in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_gradients_are_not_recorded(make: Any) -> None:
    artifact = load(make())
    with torch.no_grad():
        assert not artifact(torch.zeros(4, 3, requires_grad=True))["y"].requires_grad
    assert torch.is_grad_enabled()
    assert not artifact(torch.zeros(4, 3))["y"].requires_grad
    assert torch.is_grad_enabled()


def test_an_error_of_the_graph_is_an_exception(make: Any) -> None:
    artifact = load(make())
    with pytest.raises(IndexError, match=r"model\.py:1"):
        artifact(torch.full((2, 3), -1.0))
    assert artifact(torch.zeros(2, 3))["n"] == 3


def test_entry_points_are_named(make: Any) -> None:
    with pytest.raises(ArtifactError, match=r"FXA202.*\n.*forward"):
        load(make())["decode"]


def test_requirements_are_checked(make: Any) -> None:
    for changes, code in (
        ({"entry_abi": 3}, "FXA104"),
        ({"torch": "1.0"}, "FXA106"),
        ({"system": "plan9-mips"}, "FXA105"),
        ({"targets": ("best",)}, "FXA105"),
        ({"version": (2, 7)}, "FXA104"),
        ({"version": (3, 0)}, "FXA104"),
        ({"version": (0, 9)}, "FXA104"),
    ):
        with pytest.raises(ArtifactError) as caught:
            load(make(**changes))
        assert caught.value.code == code, changes
        assert caught.value.action


def test_files_of_version_1_are_told_apart(make: Any) -> None:
    path = make(version=(1, 0))
    content = path.read_bytes()
    manifest = manifest_in(content)
    path.write_bytes(content[:-64] + hashlib.sha256(manifest).hexdigest().encode())
    with pytest.raises(ArtifactError, match=r"FXA104.*version 1\.0"):
        load(path)


def test_files_of_version_2_0_are_read(make: Any) -> None:
    x = torch.zeros(2, 3)
    assert torch.equal(load(make(kind="blake3"))(x)["y"], load(make())(x)["y"])
    assert fxstack_artifact.inspect(make(kind="blake3"))["format"] == [2, 0]
    with pytest.raises(ArtifactError, match="FXA102"):  # checksums came with 2.1
        load(make(version=(2, 0)))


def manifest_in(content: bytes) -> bytes:
    """The manifest in a file."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return file.read("manifest.json")


def test_a_program_that_means_nothing_is_refused(make: Any) -> None:
    """Whoever can write hashes can write anything: it is still an error, and no crash."""
    codes = []
    base = _program(make)
    for path in _paths(base):
        for replacement in (None, -1, 99, "x", [], {}, 1 << 70):
            changed = json.loads(json.dumps(base))
            _set(changed, path, replacement)
            if changed == base:
                continue
            try:
                load(make(changed))
            except ArtifactError as error:
                codes.append(error.code)
    assert len(codes) > 300
    assert set(codes) <= {"FXA108", "FXA201", "FXA102", "FXA202"}


def _program(make: Any) -> Any:
    from fxstack_artifact.container.reading import open_archive

    copies = open_archive(make()).contents(lambda name: name == "program.json")
    return json.loads(copies["program.json"])


def _paths(data: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path for key, value in items for path in ((*before, key), *_paths(value, (*before, key)))]


def _set(data: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        data = data[key]
    data[path[-1]] = value


def test_inspect_loads_nothing(make: Any) -> None:
    path = make(system="plan9-mips")
    found = fxstack_artifact.inspect(path)
    json.dumps(found)
    assert found["requires"]["system"] == "plan9-mips"
    assert found["entry_points"]["forward"]["symbols"] == [{"name": "batch", "low": 2, "high": 8}]
    assert found["constants"] == [{"name": "w", "dtype": "float32", "sizes": [3]}]
    with pytest.raises(ArtifactError):
        load(path)


def test_nothing_of_the_stack_is_imported() -> None:
    code = "import sys, fxstack_artifact.program.entry_point; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {
        "fxstack",
        "fx_interface",
        "fx_guards",
        "dynamo_capture",
        "aot_autograd",
        "inductor_codegen",
    }


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other"
    for content in (b"", b"\x7fELF" + bytes(500), b"PK\3\4", b"PK\3\4" + bytes(500), b"x"):
        path.write_bytes(content)
        for copy in (False, True):
            with pytest.raises(ArtifactError) as caught:
                load(path, copy=copy)
            assert caught.value.code in ("FXA101", "FXA102")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")
