"""Artifacts run from C++, without Python: a library and two programs, built by CMake."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import fxstack
import fxstack_artifact
from fxstack.artifacts.archive import write_archive
from fxstack_artifact.container.reading import open_archive

SOURCE = Path(fxstack_artifact.__file__).parents[2] / "cpp"
LIBRARIES = Path(torch.__file__).parent / "lib"
X = torch.arange(24.0).reshape(3, 8) / 24


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built programs."""
    for tool in ("cmake", "c++"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    if not SOURCE.is_dir():
        pytest.skip("the sources of the C++ library are not in this installation")
    if not (LIBRARIES / "libtorch_cpu.so").exists():
        pytest.skip("torch has no libtorch_cpu.so")
    folder = tmp_path_factory.mktemp("cpp")
    for command in (
        ["cmake", "-S", str(SOURCE), "-B", str(folder), f"-DTORCH_LIBRARIES={LIBRARIES}"],
        ["cmake", "--build", str(folder)],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning:" not in done.stderr
    return folder


def run(programs: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [programs / "run_artifact", *map(str, arguments)], capture_output=True, text=True, env={}
    )


def model() -> nn.Module:
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4)).eval()
    made[0].weight = nn.Parameter(torch.randn(8, 16).T)  # strides that are not a row's
    return made


def test_results_are_those_of_python(programs: Path, tmp_path: Path) -> None:
    path = fxstack.aot_compile(model(), (X,), path=tmp_path / "m.fxa", dynamic_shapes=[{0: "batch"}])
    loaded = fxstack.load(path)
    for n in (3, 5):
        x = torch.arange(n * 8.0).reshape(n, 8) / (n * 8)
        done = run(programs, path, n, 8)
        assert done.returncode == 0, done.stderr
        got = torch.tensor([float(line) for line in done.stdout.split()]).reshape(n, 4)
        with torch.no_grad():
            assert torch.equal(got, loaded(x))
            torch.testing.assert_close(got, model()(x))


def test_a_file_for_both_runs_on_the_processor(programs: Path, tmp_path: Path) -> None:
    path = fxstack.aot_compile(model(), (X,), path=tmp_path / "m.fxa")
    want, archive = run(programs, path, 3, 8), open_archive(path)
    contents = archive.contents(lambda name: True) | {"program.gpu.json": b"{}", "native/0.sm_90.so": b""}
    write_archive(path, contents, (*archive.manifest.targets, "sm_90"))
    assert open_archive(path).manifest.version == (2, 2)
    done = run(programs, path, 3, 8)
    assert (done.returncode, done.stdout) == (0, want.stdout)
    assert want.stdout


def test_no_python_is_linked(programs: Path) -> None:
    done = subprocess.run(["ldd", programs / "run_artifact"], capture_output=True, text=True, check=True)
    assert "libtorch_cpu" in done.stdout
    assert "libpython" not in done.stdout
    assert "libtorch_python" not in done.stdout


def test_what_does_not_fit_is_told(programs: Path, tmp_path: Path) -> None:
    path = fxstack.aot_compile(model(), (X,), path=tmp_path / "m.fxa")
    done = run(programs, path, 3, 9)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "[FXA305] input has size 9 in dimension 1, the artifact takes 8\n  to do: pass 8 there, or make the artifact "
        'again with dynamic_shapes={"input": {1: "dim_1"}} (any name; sizes of one name are equal)\n'
    )


def test_views_among_results_need_python(programs: Path, tmp_path: Path) -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x + 1
        return y, y[0]

    done = run(programs, fxstack.aot_compile(f, (X,), path=tmp_path / "v.fxa"), 3, 8)
    assert done.stderr == "[FXA110] result 1 of forward is made in Python (view)\n"


def test_changed_files_are_refused(programs: Path, tmp_path: Path, mutated: Any) -> None:
    """The same 1,000 changes as in Python, each refused with the same code."""
    good = fxstack.aot_compile(model(), (X,), path=tmp_path / "m.fxa").read_bytes()
    draw = random.Random(0)
    paths, wanted = [], []
    for number in range(1000):
        path = tmp_path / f"changed{number}.fxa"
        path.write_bytes(mutated(good, draw))
        paths.append(path)
        try:
            fxstack.load(path)
            wanted.append("loaded")
        except fxstack.ArtifactError as error:
            wanted.append(f"[{error.code}]")
    done = subprocess.run(
        [programs / "load_all"], input="\n".join(map(str, paths)), capture_output=True, text=True, check=True
    )
    assert [line.split()[0] for line in done.stdout.splitlines()] == wanted
    assert Counter(wanted)["loaded"] < 10
