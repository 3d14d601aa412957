"""A model is written to a file, and the file computes what eager does."""

from __future__ import annotations

import copy
import random
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import nn

import fxstack
import fxstack_artifact
from fxstack.options import OptionError
from fxstack_artifact import ArtifactError, ContractError, _native

X = torch.randn(3, 8, generator=torch.Generator().manual_seed(0))


def mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval()


def test_a_small_model(tmp_path: Path) -> None:
    model = mlp()
    path = fxstack.aot_compile(model, (X,), path=tmp_path / "m.fxa")
    loaded = fxstack.load(path)
    with torch.no_grad():
        torch.testing.assert_close(loaded(X), model(X))
        torch.testing.assert_close(loaded(input=X), model(X))
        assert torch.equal(loaded(X), fxstack.compile(model)(X))
    assert set(loaded.state_dict()) == set(model.state_dict())
    with pytest.raises(ContractError, match="FXA305"):
        loaded(X[:2])


def test_sizes_vary_within_the_contract(tmp_path: Path) -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, y], 1) @ torch.ones(2 * x.shape[1], 2) + x.shape[0]

    shapes = {"x": {0: "batch", 1: fxstack.Dim("width", max=64)}, "y": {0: "batch", 1: "width"}}
    path = fxstack.aot_compile(f, (X, X + 1), path=tmp_path / "f.fxa", dynamic_shapes=shapes)
    loaded = fxstack.load(path)
    for n, m in ((3, 8), (2, 2), (7, 64), (33, 5)):
        x, y = torch.randn(n, m), torch.randn(n, m)
        torch.testing.assert_close(loaded(x, y), f(x, y))
    for x, y, code in (
        (torch.ones(3, 65), torch.ones(3, 65), "FXA305"),
        (torch.ones(1, 8), torch.ones(1, 8), "FXA305"),
        (torch.ones(3, 8), torch.ones(4, 8), "FXA30[57]"),
        (torch.ones(3, 8), torch.ones(3, 9), "FXA30[57]"),
    ):
        with pytest.raises(ContractError, match=code):
            loaded(x, y)


def test_numbers_in_tensors_are_computed_with(tmp_path: Path) -> None:
    def f(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        return x * n.tolist()[0]

    loaded = fxstack.load(fxstack.aot_compile(f, (X, torch.tensor([3])), path=tmp_path / "f.fxa"))
    assert torch.equal(loaded(X, torch.tensor([5])), X * 5)


Pair = namedtuple("Pair", "left right")


def test_numbers_vary(tmp_path: Path) -> None:
    def f(x: torch.Tensor, scale: float = 1.0, n: int = 3, *, power: float) -> torch.Tensor:
        y = x * (1 - 0.1 * scale / 20) + n // 2
        return y**2 * power

    path = fxstack.aot_compile(
        f,
        (X, 2.0),
        {"power": 3.0},
        path=tmp_path / "f.fxa",
        dynamic_shapes={"x": {0: "batch"}, "scale": fxstack.Number(), "power": fxstack.Number()},
    )
    loaded = fxstack.load(path)
    for scale, power in ((2.0, 3.0), (0.5, 1e-3), (-3.7, float("inf")), (0.0, 1e10)):
        torch.testing.assert_close(loaded(X[:2], scale, power=power), f(X[:2], scale, power=power))
    for args, code in (((X, 2), "FXA302"), ((X, True), "FXA302"), ((X,), "FXA301"), ((X, 2.0, 4), "FXA311")):
        with pytest.raises(ContractError, match=code):
            loaded(*args, power=1.0)
    with pytest.raises(fxstack.ExportError, match="FXS507"):
        fxstack.export(f, (X,), {"power": 3.0}, dynamic_shapes={"x": fxstack.Number()})

    def g(x: torch.Tensor, n: int) -> torch.Tensor:
        return x * n

    loaded = fxstack.load(
        fxstack.aot_compile(g, (X, 5), path=tmp_path / "g.fxa", dynamic_shapes={"n": fxstack.Number()})
    )
    for n in (5, 0, 1, -7, 2**40):
        assert torch.equal(loaded(X, n), g(X, n))
    with pytest.raises(ContractError, match=r"FXA302.*64 bits"):
        loaded(X, 2**64)

    def chosen(x: torch.Tensor, n: int) -> torch.Tensor:
        return x if n > 2 else x + 1

    with pytest.raises(fxstack.ExportError, match=r"FXS50[135]"):
        fxstack.export(chosen, (X, 5), dynamic_shapes={"n": fxstack.Number()})


def _tells(x: torch.Tensor) -> tuple[torch.Tensor, float]:
    return x + 1, x.sum().item()


def _compares(x: torch.Tensor) -> tuple[torch.Tensor, bool]:
    return x + 1, bool(x.sum() > 0)


def _chooses(x: torch.Tensor) -> torch.Tensor:
    return x if x.sum() > 0 else x + 1


def _names(x: torch.Tensor) -> tuple[torch.Tensor, str]:
    return x + 1, "positive" if x.sum() > 0 else "negative"


def _is_larger(x: torch.Tensor) -> torch.Tensor:
    return max(x.sum(), x.prod())


@pytest.mark.parametrize("function", [_tells, _compares, _chooses, _names, _is_larger])
def test_what_python_makes_of_data_is_in_no_artifact(function: Callable[..., Any]) -> None:
    """It would be that of the example for ever."""
    with pytest.raises(fxstack.ExportError, match="FXS503"):
        fxstack.export(function, (X,))


def test_a_number_out_of_data_that_the_graph_computes_with(tmp_path: Path) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x * float(x.sum())

    loaded = fxstack.load(fxstack.aot_compile(f, (X,), path=tmp_path / "f.fxa"))
    for x in (X, -X - 1):
        torch.testing.assert_close(loaded(x), f(x))


def _resized(x: torch.Tensor, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    y = x[:, :n] + torch.arange(n, dtype=x.dtype)
    return y.repeat(2, 1).view(-1, n) * n, torch.topk(x, n)[0]


def test_a_number_is_a_size(tmp_path: Path) -> None:
    x = torch.arange(24.0).reshape(3, 8)
    path = fxstack.aot_compile(
        _resized, (x, 3), path=tmp_path / "f.fxa", dynamic_shapes={"x": {0: "batch"}, "n": "length"}
    )
    loaded = fxstack.load(path)
    for rows, n in ((3, 3), (2, 2), (3, 8), (2, 5)):
        for got, want in zip(loaded(x[:rows], n), _resized(x[:rows], n), strict=True):
            assert torch.equal(got, want)
            assert got.stride() == want.stride()
    for args, told in (
        ((x, 9), r"FXA307\] sizes must fit each other: 9 <= 8 does not hold; here length=9 \(n\)"),
        (
            (x, 1),
            r"FXA305\] n is 1, the artifact takes at least 2 \(length\)\n  to do: 0 and 1 are in no range",
        ),
        ((x, -1), r"FXA305\] n is -1"),
        ((x, 3.0), r"FXA302\] n is of type float, the artifact takes an int"),
        ((x, True), r"FXA302\] n is of type bool"),
        ((x, 2**70), r"FXA302\] n has more than 64 bits"),
    ):
        with pytest.raises(ContractError, match=told):
            loaded(*args)
    shown = fxstack_artifact.inspect(path)["entry_points"]["forward"]
    assert shown["inputs"][1] == "n: int"
    assert {one["name"] for one in shown["symbols"]} == {"batch", "length"}


def test_a_number_has_bounds_and_may_be_the_size_of_a_tensor(tmp_path: Path) -> None:
    def f(x: torch.Tensor, *, n: int, m: int) -> torch.Tensor:
        return x.new_zeros(n, m) + x.sum(0, keepdim=True).t()[:1]

    dims = {"x": {0: "batch"}, "n": "batch", "m": fxstack.Dim("width", min=3, max=9)}
    path = fxstack.aot_compile(
        f, (torch.ones(4, 2),), {"n": 4, "m": 5}, path=tmp_path / "f.fxa", dynamic_shapes=dims
    )
    loaded = fxstack.load(path)
    x = torch.ones(7, 2)
    assert torch.equal(loaded(x, n=7, m=3), f(x, n=7, m=3))
    with pytest.raises(ContractError, match="FXA307"):
        loaded(x, n=6, m=3)
    wanted = r'FXA305\] m is 10, .* 3 to 9 \(width\)\n.*dynamic_shapes={"m": fxstack.Dim\("width", min=3, max=10\)}'
    with pytest.raises(ContractError, match=wanted):
        loaded(x, n=7, m=10)


def test_a_number_that_the_model_fixes_is_no_size(tmp_path: Path) -> None:
    def fixed(x: torch.Tensor, n: int) -> torch.Tensor:
        return x.view(n, -1) if n == 3 else x

    with pytest.raises(fxstack.ExportError, match=r"FXS506.*length \(the argument n\) is fixed to 3"):
        fxstack.export(fixed, (torch.ones(3, 8), 3), dynamic_shapes={"n": "length"})
    for n, why in ((1, "at least 2, and n is 1"), (2.0, "n is a float"), (-2, "n is a int")):
        with pytest.raises(fxstack.ExportError, match=f"FXS507.*{why}"):
            fxstack.export(fixed, (torch.ones(3, 8), n), dynamic_shapes={"n": "length"})


def test_a_number_is_a_size_in_training(tmp_path: Path) -> None:
    model = nn.Linear(8, 8)

    class Cut(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = model

        def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
            return self.layer(x)[:, :n].square().sum()

    path = fxstack.aot_compile(
        Cut(), (torch.ones(3, 8), 3), path=tmp_path / "t.fxa", training=True, dynamic_shapes={"n": "length"}
    )
    loaded = fxstack.load(path)
    for n in (3, 2, 8):
        x = torch.randn(3, 8)
        loaded.zero_grad()
        loss = loaded(x, n)
        loss.backward()
        model.zero_grad()
        want = Cut()(x, n)
        want.backward()
        torch.testing.assert_close(loss, want)
        torch.testing.assert_close(loaded.get_parameter("layer.weight").grad, model.weight.grad)


def test_arguments_behind_one_that_is_left_out(tmp_path: Path) -> None:
    def f(x: torch.Tensor, a: torch.Tensor | None = None, b: torch.Tensor | None = None) -> torch.Tensor:
        return x + (10 if a is None else a) + (100 if b is None else 2 * b)

    loaded = fxstack.load(fxstack.aot_compile(f, (X,), {"b": X}, path=tmp_path / "f.fxa"))
    assert torch.equal(loaded(X, b=X), f(X, b=X))
    assert torch.equal(loaded(X, None, X), f(X, None, X))
    with pytest.raises(ContractError, match="FXA311"):
        loaded(X, X, X)


class Buffers(nn.Module):
    """Results of every kind, a buffer that is written, a weight seen by other strides, and two equal ones."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.weight = nn.Parameter(torch.randn(8, 8).T)
        self.twin = nn.Parameter(self.weight.detach().clone())
        self.plain = torch.arange(8.0)
        self.register_buffer("table", torch.randn(1, 8).expand(3, 8))

    def forward(
        self, x: torch.Tensor, scale: float = 2.0, *, pair: Pair, flag: bool = True
    ) -> dict[str, Any]:
        y = self.norm(x) @ self.weight * scale + self.plain + self.table
        z = y @ self.twin + pair.left[0]
        return {
            "y": y,
            "row": y[0],
            "pair": Pair(z, z.T),
            "same": z,
            "x": x,
            "w": self.weight,
            "k": (None, "k", flag),
        }


def test_results_are_eagers(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Buffers()
    eager = copy.deepcopy(model)
    pair = Pair([torch.randn(8)], {"unused": torch.ones(1)})
    path = fxstack.aot_compile(model, (X,), {"pair": pair}, path=tmp_path / "b.fxa")
    assert torch.equal(model.norm.running_mean, torch.zeros(8))  # the export ran on copies
    assert int(model.norm.num_batches_tracked) == 0
    loaded = fxstack.load(path)
    with torch.no_grad():
        for _ in range(3):
            x = torch.randn(3, 8)
            got, want = loaded(x, pair=pair), eager(x, pair=pair)
            assert list(got) == list(want)
            for name in ("y", "row", "same", "w"):
                torch.testing.assert_close(got[name], want[name])
                assert got[name].stride() == want[name].stride()
            torch.testing.assert_close(got["pair"].left, want["pair"].left)
            assert got["pair"].right.data_ptr() == got["same"].data_ptr()
            assert got["row"].data_ptr() == got["y"].data_ptr()
            assert got["x"] is x
            assert got["k"] == want["k"]
    for name, tensor in eager.norm.named_buffers():
        torch.testing.assert_close(loaded.state_dict()[f"norm.{name}"], tensor)
    with pytest.raises(ContractError, match=r"FXA311.*scale is 3.0"):
        loaded(X, 3.0, pair=pair)
    with pytest.raises(ContractError, match=r"FXA301.*pair is missing"):
        loaded(X)


def test_inputs_are_written(tmp_path: Path) -> None:
    def step(cache: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        cache[1:] = cache[:-1].clone()
        cache[0] = new
        return cache.sum(0)

    loaded = fxstack.load(fxstack.aot_compile(step, (X, X[0]), path=tmp_path / "s.fxa"))
    before = X.clone()
    ours, eagers = torch.zeros(3, 8), torch.zeros(3, 8)
    for i in range(4):
        version = ours._version
        torch.testing.assert_close(loaded(ours, X[0] + i), step(eagers, X[0] + i))
        assert torch.equal(ours, eagers)
        assert ours._version > version
    assert torch.equal(X, before)
    with pytest.raises(ContractError, match="FXA309"):
        loaded(ours, ours[0])
    assert torch.equal(ours, eagers)


def test_entry_points_share_weights(tmp_path: Path) -> None:
    model = mlp()
    one = fxstack.export(model, (X,), dynamic_shapes=[{0: "batch"}])
    other = fxstack.export(model, (X[:1],))
    path = fxstack.aot_compile({"many": one, "single": other}, path=tmp_path / "m.fxa")
    loaded = fxstack.load(path)
    assert loaded.entry_points == ("many", "single")
    with torch.no_grad():
        torch.testing.assert_close(loaded["many"](X), model(X))
        torch.testing.assert_close(loaded["single"](X[:1]), model(X[:1]))
    assert len(fxstack.inspect(path)["constants"]) == 4
    with pytest.raises(ArtifactError, match="FXA202"):
        loaded(X)


def test_entry_points_of_different_models(tmp_path: Path) -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            setattr(self, "0", nn.Parameter(torch.full((4,), 3.0)))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * getattr(self, "0")

    one, other, scaled = mlp(), nn.Sequential(nn.Linear(8, 4)), Scaled()
    exports = {"one": fxstack.export(one, (X,)), "other": fxstack.export(other, (X,))}
    exports["scaled"] = fxstack.export(scaled, (X[:, :4],))
    loaded = fxstack.load(fxstack.aot_compile(exports, path=tmp_path / "m.fxa"))
    with torch.no_grad():
        torch.testing.assert_close(loaded["one"](X), one(X))
        torch.testing.assert_close(loaded["other"](X), other(X))
        torch.testing.assert_close(loaded["scaled"](X[:, :4]), scaled(X[:, :4]))
    assert len(loaded.state_dict()) == 7


def test_weights_are_bound_when_it_is_loaded(tmp_path: Path) -> None:
    model = Buffers()
    pair = Pair([torch.randn(8)], {"unused": torch.ones(1)})
    path = fxstack.aot_compile(model, (X,), {"pair": pair}, path=tmp_path / "m.fxa", weights="outside")
    with pytest.raises(ArtifactError, match=r"FXA201.*norm\.num_batches_tracked is not in the artifact"):
        fxstack.load(path)
    other = Buffers()
    eager = copy.deepcopy(other)
    file = tmp_path / "other.safetensors"
    safetensors.torch.save_file({name: t.contiguous() for name, t in other.state_dict().items()}, file)
    for weights in (other.state_dict(), file):
        loaded = fxstack.load(path, weights=weights)
        reference = copy.deepcopy(eager)
        with torch.no_grad():
            for _ in range(2):
                torch.testing.assert_close(loaded(X, pair=pair)["y"], reference(X, pair=pair)["y"])
    torch.testing.assert_close(other.norm.running_mean, reference.norm.running_mean)  # the very tensors
    for wrong in ({"twin": torch.ones(3)}, {"twin": torch.ones(8, 8).double()}):
        with pytest.raises(ArtifactError, match=r"FXA201.*twin"):
            fxstack.load(path, weights=other.state_dict() | wrong)
    (tmp_path / "none").write_bytes(b"x")
    with pytest.raises(ArtifactError, match=r"FXA201.*no safetensors"):
        fxstack.load(path, weights=tmp_path / "none")


def test_weights_in_a_file_beside(tmp_path: Path) -> None:
    model = Buffers()
    pair = Pair([torch.randn(8)], {"unused": torch.ones(1)})
    path = fxstack.aot_compile(model, (X,), {"pair": pair}, path=tmp_path / "m.fxa", weights="beside")
    file = tmp_path / "m.fxa.safetensors"
    held = safetensors.torch.load_file(file)
    assert held.keys() == model.state_dict().keys()
    assert all(torch.equal(tensor, model.state_dict()[name]) for name, tensor in held.items())
    assert fxstack_artifact.inspect(path)["weights_beside"] == {
        "file": file.name,
        "bytes": file.stat().st_size,
    }
    with torch.no_grad():
        for settings in ({}, {"copy": True}, {"weights": {"twin": model.state_dict()["twin"]}}):
            loaded = fxstack.load(path, **settings)
            reference = copy.deepcopy(model)
            for _ in range(2):  # buffers that are written stay in the process
                torch.testing.assert_close(loaded(X, pair=pair)["y"], reference(X, pair=pair)["y"])
    whole = file.read_bytes()
    for changed in (whole[:-1] + bytes([whole[-1] ^ 1]), whole[:-8], b""):
        file.write_bytes(changed)
        with pytest.raises(ArtifactError, match=r"FXA103.*m\.fxa\.safetensors"):
            fxstack.load(path)
    file.unlink()
    with pytest.raises(ArtifactError, match=r"FXA201.*m\.fxa\.safetensors, which cannot be read"):
        fxstack.load(path)
    loaded = fxstack.load(path, weights=model.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(loaded(X, pair=pair)["y"], copy.deepcopy(model)(X, pair=pair)["y"])


def test_places_of_weights_have_names() -> None:
    with pytest.raises(OptionError, match=r"FXS103\] weights is 'besides'"):
        fxstack.aot_compile(mlp(), (X,), path="none.fxa", weights="besides")  # type: ignore[arg-type]


def test_levels_of_processors(tmp_path: Path) -> None:
    level = next((name for name in _native.cpu_levels() if name.endswith("v2")), None)
    if level is None:
        pytest.skip("no processor of x86-64-v2")
    path = fxstack.aot_compile(mlp(), (X,), path=tmp_path / "m.fxa", target=[level, _native.cpu_levels()[0]])
    found = fxstack.inspect(path)
    assert found["targets"] == list(dict.fromkeys([_native.cpu_levels()[0], level]))
    assert fxstack.load(path).target == _native.cpu_levels()[0]
    low = fxstack.aot_compile(mlp(), (X,), path=tmp_path / "low.fxa", target=level)
    with torch.no_grad():
        torch.testing.assert_close(fxstack.load(low)(X), mlp()(X))
    with pytest.raises(fxstack.ExportError, match="FXS509"):
        fxstack.aot_compile(mlp(), (X,), path=tmp_path / "m.fxa", target="i386")


STACK = (
    "fxstack",
    "fx_interface",
    "fx_guards",
    "dynamo_capture",
    "aot_autograd",
    "primtorch_decomps",
    "inductor_codegen",
    "triton",
)
_ALONE = """
import sys

class Barred:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {stack!r}:
            raise ImportError(f"{{name}} is not installed here")

sys.meta_path.insert(0, Barred())
import os
os.environ["PATH"] = ""
import torch, fxstack_artifact
x = torch.load({inputs!r})
torch.save(fxstack_artifact.load({path!r})(x), {outputs!r})
print(*sys.modules)
"""


def test_torch_and_the_loader_suffice(tmp_path: Path) -> None:
    model = mlp()
    path = fxstack.aot_compile(model, (X,), path=tmp_path / "m.fxa")
    torch.save(X, tmp_path / "x.pt")
    code = _ALONE.format(
        stack=STACK, inputs=str(tmp_path / "x.pt"), outputs=str(tmp_path / "y.pt"), path=str(path)
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not {name.partition(".")[0] for name in done.stdout.split()} & set(STACK)
    assert "torch._dynamo" not in done.stdout.split()
    with torch.no_grad():
        torch.testing.assert_close(torch.load(tmp_path / "y.pt"), model(X))


def test_changed_files_are_refused(tmp_path: Path, mutated: Any) -> None:
    """1,000 random changes of a file: bits, bytes, runs, cuts, additions and moves."""
    model = mlp()
    good = fxstack.aot_compile(model, (X,), path=tmp_path / "m.fxa").read_bytes()
    path = tmp_path / "changed.fxa"
    with torch.no_grad():
        want = fxstack.load(tmp_path / "m.fxa")(X)
    draw = random.Random(0)
    refused: dict[str, int] = {}
    for _ in range(1000):
        changed = mutated(good, draw)
        path.write_bytes(changed)
        try:
            got = fxstack.load(path)(X)
        except ArtifactError as error:
            refused[error.code] = refused.get(error.code, 0) + 1
        else:
            assert changed == good
            assert torch.equal(got, want)
    assert sum(refused.values()) > 990
    assert set(refused) <= {"FXA101", "FXA102", "FXA103"}
    assert min(refused.get("FXA102", 0), refused.get("FXA103", 0)) > 50
