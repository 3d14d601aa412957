"""Artifacts run from C++, without Python: a library and two programs, built by CMake."""

from __future__ import annotations

import math
import random
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import fxstack
import fxstack_artifact
from fxstack.artifacts.archive import write_archive
from fxstack_artifact.container.reading import open_archive

SOURCE = Path(fxstack_artifact.__file__).parents[2] / "cpp"
X = torch.arange(24.0).reshape(3, 8) / 24


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


def counted(*sizes: int) -> torch.Tensor:
    """What the programs fill their tensors with."""
    count = math.prod(sizes)
    return (torch.arange(float(count)) / count).reshape(sizes)


def printed(done: subprocess.CompletedProcess[str]) -> torch.Tensor:
    assert done.returncode == 0, done.stderr
    return torch.tensor([float(line) for line in done.stdout.split()])


def test_weights_beside_are_checked_and_mapped(programs: Path, tmp_path: Path) -> None:
    """One of them lies otherwise in memory than in the file."""
    path = fxstack.aot_compile(model(), (X,), path=tmp_path / "m.fxa", weights="beside")
    weights = tmp_path / "m.fxa.safetensors"
    with torch.no_grad():
        want = fxstack.load(path)(X).flatten()
    assert torch.equal(printed(run(programs, path, 3, 8)), want)
    good = weights.read_bytes()
    weights.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    done = run(programs, path, 3, 8)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "[FXA103] m.fxa.safetensors, which holds its weights, was changed\n  to do: copy or make it again\n"
    )
    for other in (good[:-4], b"", good + b"\0"):
        weights.write_bytes(other)
        assert run(programs, path, 3, 8).stderr.startswith("[FXA103]")
    weights.unlink()
    assert run(programs, path, 3, 8).stderr == (
        "[FXA201] its weights are in m.fxa.safetensors, which cannot be read beside it (No such file or directory)\n"
        "  to do: put it there, or pass them: fxa_load_with\n"
    )


def test_a_file_of_weights_is_passed(programs: Path, tmp_path: Path) -> None:
    """In the place of those inside, of those beside (which are not looked for), and where there are none."""
    others = model()
    with torch.no_grad():
        for weight in others.parameters():
            weight.mul_(2)
    file = tmp_path / "others.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in others.state_dict().items()}, file)
    for weights in ("inside", "beside", "outside"):
        path = fxstack.aot_compile(model(), (X,), path=tmp_path / f"{weights}.fxa", weights=weights)
        (tmp_path / f"{weights}.fxa.safetensors").unlink(missing_ok=True)
        with torch.no_grad():
            want = fxstack.load(path, weights=file)(X).flatten()
        assert torch.equal(printed(run(programs, "--weights", file, path, 3, 8)), want)
        torch.testing.assert_close(want, others(X).flatten())


def test_weights_that_are_not_passed_are_named(programs: Path, tmp_path: Path) -> None:
    path = fxstack.aot_compile(model(), (X,), path=tmp_path / "m.fxa", weights="outside")
    assert run(programs, path, 3, 8).stderr == (
        "[FXA201] the weight 0.weight is not in the artifact\n"
        "  to do: pass it: fxa_load_with takes tensors by their names, or a safetensors file\n"
    )


@pytest.mark.parametrize(
    "change, found",
    [
        (
            lambda w: w.double(),
            "torch.float64 of [16, 8]",
        ),
        (
            lambda w: w[:, :7].contiguous(),
            "torch.float32 of [16, 7]",
        ),
    ],
)
def test_another_weight_in_a_file_is_refused(programs: Path, tmp_path: Path, change: Any, found: str) -> None:
    path = fxstack.aot_compile(model(), (X,), path=tmp_path / "m.fxa")
    state = {name: tensor.contiguous() for name, tensor in model().state_dict().items()}
    file = tmp_path / "w.safetensors"
    save_file(state | {"0.weight": change(state["0.weight"])}, file)
    assert run(programs, "--weights", file, path, 3, 8).stderr == (
        f"[FXA201] the weight 0.weight is {found}, the program takes torch.float32 of [16, 8] on cpu\n"
    )
    file.write_bytes(b"no such thing")
    assert run(programs, "--weights", file, path, 3, 8).stderr.startswith(
        f"[FXA201] {file} is no safetensors file ("
    )
    assert run(programs, "--weights", tmp_path / "none", path, 3, 8).stderr == (
        f"[FXA201] {tmp_path / 'none'} cannot be opened: No such file or directory\n"
    )


def bound(programs: Path, path: Path, *weights: tuple[object, ...]) -> subprocess.CompletedProcess[str]:
    words = [word for weight in weights for word in ("--", *weight)]
    return subprocess.run(
        [programs / "bind_weights", path, "3", "8", *map(str, words)], capture_output=True, text=True, env={}
    )


def test_tensors_of_the_program_are_bound_by_name(programs: Path, tmp_path: Path) -> None:
    """It computes with their very memory, but where the program takes other strides."""
    path = fxstack.aot_compile(model(), (X,), path=tmp_path / "m.fxa", weights="beside")
    first, last, bias = counted(16, 8), counted(4, 16), counted(16)
    done = bound(programs, path, ("0.weight", 16, 8), ("3.weight", 4, 16), ("1.bias", 16), ("unknown", 3))
    found = printed(done).reshape(2, -1)
    passed = {"0.weight": first.T.contiguous().T, "3.weight": last.clone(), "1.bias": bias.clone()}
    loaded = fxstack.load(path, weights=passed)
    with torch.no_grad():
        assert torch.equal(found[0], loaded(counted(3, 8)).flatten())
        passed["3.weight"].div_(2)
        passed["1.bias"].div_(2)
        assert torch.equal(found[1], loaded(counted(3, 8)).flatten())
    assert not torch.equal(found[0], found[1])


def test_a_bound_tensor_that_does_not_fit_is_refused(programs: Path, tmp_path: Path) -> None:
    """In the words of Python."""
    path = fxstack.aot_compile(model(), (X,), path=tmp_path / "m.fxa")
    done = bound(programs, path, ("3.weight", 4, 15))
    with pytest.raises(fxstack.ArtifactError) as refused:
        fxstack.load(path, weights={"3.weight": counted(4, 15)})
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{refused.value}\n")


def test_a_shared_weight_is_bound_by_any_of_its_names(programs: Path, tmp_path: Path) -> None:
    shared = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False))
    shared[1].weight = shared[0].weight
    path = fxstack.aot_compile(shared, (X,), path=tmp_path / "m.fxa", weights="outside")
    want = fxstack.load(path, weights={"1.weight": counted(8, 8)})(counted(3, 8)).flatten()
    for name in ("0.weight", "1.weight"):
        found = printed(bound(programs, path, (name, 8, 8))).reshape(2, -1)
        assert torch.equal(found[0], want)


class Repeated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("row", torch.arange(8.0).expand(3, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.row


def test_a_weight_that_repeats_is_stored_once(programs: Path, tmp_path: Path) -> None:
    path = fxstack.aot_compile(Repeated(), (X,), path=tmp_path / "m.fxa", weights="beside")
    assert torch.equal(printed(run(programs, path, 3, 8)), (X * torch.arange(8.0)).flatten())
    done = bound(programs, path, ("row", 3, 8))
    with pytest.raises(fxstack.ArtifactError) as refused:
        fxstack.load(path, weights={"row": counted(3, 8)})
    assert (done.returncode, done.stderr) == (1, f"{refused.value}\n")


class Views(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.arange(8.0))

    def forward(self, x: torch.Tensor) -> Any:
        y = x + self.weight
        first, second = y.split([3, 5], dim=1)
        return (
            y, y[0], y[1:, ::2], y.t(), first, second, y.unsqueeze(0).expand(2, -1, -1), y.view(-1), y.unbind(1)[3],
            y.diagonal(), y.permute(1, 0), y.unfold(1, 3, 2), y.flatten(), y.view(torch.int32).view(torch.float32),
            y.narrow(1, 2, 4), y.reshape(x.shape[0], 4, 2), y.squeeze(), y.chunk(2, 1)[1],
            y.as_strided((2, 2), (8, 1), 3), x[0], x, self.weight, self.weight[2:], self.weight,
        )  # fmt: skip


def test_views_among_results_are_made_again(programs: Path, tmp_path: Path) -> None:
    """Of the graph's results, inputs and weights; what is of a weight outlives the artifact."""
    path = fxstack.aot_compile(Views(), (X,), path=tmp_path / "v.fxa", dynamic_shapes=[{0: "batch"}])
    for n in (3, 5):
        with torch.no_grad():
            want = torch.cat([result.flatten() for result in Views()(counted(n, 8))])
        assert torch.equal(printed(run(programs, path, n, 8)), want)


_KINDS = {
    "int": "i",
    "SymInt": "i",
    "bool": "i",
    "Optional[int]": "o",
    "Optional[SymInt]": "o",
    "List[int]": "l",
}
_KINDS |= {"List[SymInt]": "l", "ScalarType": "d"}


def _parameter(argument: Any, dtype: bool) -> str:
    kind = (
        "d" if dtype else _KINDS[str(argument.real_type if hasattr(argument, "real_type") else argument.type)]
    )
    if not argument.has_default_value():
        return f"{argument.name}:{kind}"
    default = argument.default_value
    return f"{argument.name}:{kind}={'none' if default is None else int(default)}"


def test_the_table_of_views_is_what_torch_says() -> None:
    """The C++ library has no schemas at hand."""
    if not SOURCE.is_dir():
        pytest.skip("the sources of the C++ library are not in this installation")
    rows = re.findall(r'\{"aten::([\w.]+)", "(.*)"(, true)?\},', (SOURCE / "src" / "views.cpp").read_text())
    assert len(rows) > 40
    for name, parameters, several in rows:
        packet, _, overload = name.partition(".")
        schema = getattr(getattr(torch.ops.aten, packet), overload or "default")._schema
        told = [_parameter(one, name == "view.dtype") for one in schema.arguments[1:]]
        assert (name, parameters, bool(several)) == (
            name,
            " ".join(told),
            str(schema.returns[0].type) == "List[Tensor]",
        )
        assert schema.arguments[0].alias_info is not None
        assert not schema.is_mutable


def test_what_needs_python_is_refused_before_anything_is_loaded(programs: Path, tmp_path: Path) -> None:
    path = fxstack.aot_compile(Views(), (X,), path=tmp_path / "v.fxa")
    archive = open_archive(path)
    contents = archive.contents(lambda name: True)
    unknown = contents["program.json"].replace(b"aten::unfold", b"aten::unheard")
    assert unknown != contents["program.json"]
    broken = {name: b"" for name in contents if name.startswith("native/")}
    write_archive(path, contents | broken | {"program.json": unknown}, archive.manifest.targets)
    assert run(programs, path, 3, 8).stderr == (
        "[FXA110] a result is a view by aten::unheard, which is made in Python\n"
    )


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


def test_changed_weights_beside_are_refused(programs: Path, tmp_path: Path, mutated: Any) -> None:
    path = fxstack.aot_compile(model(), (X,), path=tmp_path / "m.fxa", weights="beside")
    artifact, good = path.read_bytes(), (tmp_path / "m.fxa.safetensors").read_bytes()
    draw = random.Random(1)
    paths, wanted = [], []
    for number in range(200):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "m.fxa").write_bytes(artifact)
        changed = mutated(good, draw)
        (folder / "m.fxa.safetensors").write_bytes(changed)
        paths.append(folder / "m.fxa")
        wanted.append("loaded" if changed == good else "[FXA103]")
    done = subprocess.run(
        [programs / "load_all"], input="\n".join(map(str, paths)), capture_output=True, text=True, check=True
    )
    found = [line.split()[0] for line in done.stdout.splitlines() if line.startswith(("[", "loaded"))]
    assert found == wanted
    assert wanted.count("loaded") < 10
