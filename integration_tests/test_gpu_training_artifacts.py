"""Training artifacts on a CUDA device: gradients are eager's, and nothing is compiled where they run."""

from __future__ import annotations

import copy
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import fxstack
from benchmarks.models import WORKLOADS, loss_of
from fxstack_artifact import ArtifactError, ContractError, GradientError

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.usefixtures("full_precision"),
]
TOLERANCE = 1e-4


class Classifier(nn.Module):
    """Batch norm, a loss that is computed from another result, and a view of one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(24, 48)
        self.norm = nn.BatchNorm1d(48)
        self.target = nn.Linear(48, 5)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> dict[str, torch.Tensor]:
        logits = self.target(F.gelu(self.norm(self.first(x))))
        return {"loss": F.cross_entropy(logits, t), "logits": logits, "row": logits[0]}


def classifier() -> Classifier:
    torch.manual_seed(0)
    return Classifier().cuda().train()


def batch(size: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    x, t = torch.randn(size, 24, generator=draw), torch.randint(0, 5, (size,), generator=draw)
    return x.cuda(), t.cuda()


def steps(model: nn.Module, run: Callable[..., Any], sizes: tuple[int, ...]) -> list[torch.Tensor]:
    """The losses of a step for each size."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for number, size in enumerate(sizes):
        optimizer.zero_grad()
        loss = run(*batch(size, number))["loss"]
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def assert_alike(one: nn.Module, other: nn.Module) -> None:
    ours, theirs = one.state_dict(), other.state_dict()
    assert set(ours) == set(theirs)
    for name, tensor in ours.items():
        assert tensor.is_cuda
        torch.testing.assert_close(tensor, theirs[name], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("sizes", [(33,) * 6, (33, 16, 17, 64, 300, 1024, 5)])
def test_steps_are_eagers(sizes: tuple[int, ...], tmp_path: Path) -> None:
    """Fixed sizes, and sizes of several classes."""
    model = classifier()
    eager = copy.deepcopy(model)
    dim = fxstack.Dim("batch", max=1024)
    shapes = {"x": {0: dim}, "t": {0: dim}} if len(set(sizes)) > 1 else None
    path = fxstack.aot_compile(
        model, batch(33), path=tmp_path / "m.fxa", training=True, dynamic_shapes=shapes
    )
    loaded = fxstack.load(path)
    torch.testing.assert_close(steps(loaded, loaded, sizes), steps(eager, eager, sizes), rtol=1e-3, atol=1e-4)
    assert_alike(loaded, eager)
    for (name, ours), (_, theirs) in zip(loaded.named_parameters(), eager.named_parameters(), strict=True):
        assert ours.grad is not None
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-4, msg=name)
    eager.load_state_dict(loaded.state_dict())


@pytest.mark.parametrize("name", ["bert", "gpt2", "mlp", "resnet"])
def test_gradients_are_as_near_to_float64_as_eagers(name: str, tmp_path: Path) -> None:
    model, inputs = WORKLOADS[name].build(training=True)
    if name in ("resnet", "gpt2"):
        inputs.pop(
            "labels"
        )  # with which one sets a field of its configuration (FXS504), and the other logs a warning
    inputs = {key: value.cuda() for key, value in inputs.items()}
    model = model.cuda()
    exact, eager = copy.deepcopy(model).double(), copy.deepcopy(model)
    loaded = fxstack.load(fxstack.aot_compile(model, (), inputs, path=tmp_path / "m.fxa", training=True))
    for one in (loaded, eager, exact):
        given = {
            key: value.double() if one is exact and value.is_floating_point() else value
            for key, value in inputs.items()
        }
        loss_of(one(**given)).backward()
    ours = dict(loaded.named_parameters(remove_duplicate=False))
    theirs = dict(eager.named_parameters(remove_duplicate=False))
    wanted = {key: p.grad for key, p in exact.named_parameters() if p.grad is not None}
    assert wanted
    scale = 1e-4 * max(float(gradient.abs().max()) for gradient in wanted.values())

    def error(found: torch.Tensor | None, want: torch.Tensor) -> float:
        assert found is not None
        return float((found - want).abs().max() / (want.abs().max() + scale))

    for key, want in wanted.items():
        assert error(ours[key].grad, want) <= max(TOLERANCE, 4 * error(theirs[key].grad, want)), key


def two(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return (x * w).sin(), (x * v).exp().sum()


def arguments(offset: int = 0) -> list[torch.Tensor]:
    """Tensors that begin ``offset`` elements behind a multiple of 16 bytes."""
    draw = torch.Generator().manual_seed(1)
    made = [torch.randn(40, generator=draw) for _ in range(3)]
    return [torch.empty(64, device="cuda")[offset:][:40].copy_(x).requires_grad_() for x in made]


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize(
    "use",
    [
        lambda a, b: (a.sum() + b).backward(),
        lambda a, b: b.backward(),
        lambda a, b: a.sum().backward(),
        lambda a, b: a.backward(torch.arange(80.0, device="cuda")[::2]),
        lambda a, b: a.backward(torch.arange(41.0, device="cuda")[1:]),
        lambda a, b: [b.backward(retain_graph=True) for _ in range(3)],
    ],
)
def test_gradients_of_some_results(use: Callable[..., Any], offset: int, tmp_path: Path) -> None:
    """Zeros where none arrives, copies where one lies otherwise in memory, and memory that begins anywhere."""
    path = fxstack.aot_compile(two, arguments(), path=tmp_path / "m.fxa", training=True)
    found = []
    for run in (fxstack.load(path), two):
        given = arguments(offset)
        use(*run(*given))
        found.append([x.grad for x in given])
    for ours, theirs in zip(*found, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(ours, theirs)


def test_what_is_refused(tmp_path: Path) -> None:
    path = fxstack.aot_compile(two, arguments(), path=tmp_path / "m.fxa", training=True)
    loaded = fxstack.load(path)
    with pytest.raises(ContractError, match=r"FXA304.*GPU 0"):
        loaded(*(x.detach().cpu() for x in arguments()))
    given = arguments()
    with pytest.raises(GradientError, match="FXA401"):
        torch.autograd.grad(loaded(*given)[1], given[0], create_graph=True)
    result = loaded(*arguments())[1]
    result.backward()
    with pytest.raises(RuntimeError, match="second time"):
        result.backward()
    path = fxstack.aot_compile(classifier(), batch(33), path=tmp_path / "c.fxa", training=True)
    with pytest.raises(ArtifactError, match="FXA203"):
        fxstack.load(path).cpu()


def test_dropout(tmp_path: Path) -> None:
    """What the forward dropped has no gradient, and the process's generator decides."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, 0.25, True)

    x = torch.randn(4096, device="cuda", requires_grad=True)
    loaded = fxstack.load(fxstack.aot_compile(function, (x,), path=tmp_path / "m.fxa", training=True))
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        y = loaded(x)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        torch.testing.assert_close(gradient, (y != 0) / 0.75)
        assert 0.2 < float((y == 0).float().mean()) < 0.3
        found.append(y.detach())
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_autocast_inside(tmp_path: Path) -> None:
    class Cast(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cuda", dtype=torch.bfloat16):
                return self.layers(x).float().square().mean()

    torch.manual_seed(0)
    model, x = Cast().cuda(), torch.randn(48, 32, device="cuda")
    eager = copy.deepcopy(model)
    loaded = fxstack.load(fxstack.aot_compile(model, (x,), path=tmp_path / "m.fxa", training=True))
    loaded(x).backward()
    eager(x).backward()
    for ours, theirs in zip(loaded.parameters(), eager.parameters(), strict=True):
        assert ours.grad is not None
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=0.05, atol=1e-3)


def test_streams_and_threads(tmp_path: Path) -> None:
    """A backward works on its forward's stream, from several threads at once."""

    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.softmax(x @ w, -1).square().sum()

    x, w = torch.randn(256, 256, device="cuda"), torch.randn(256, 256, device="cuda", requires_grad=True)
    loaded = fxstack.load(fxstack.aot_compile(function, (x, w), path=tmp_path / "m.fxa", training=True))
    (want,) = torch.autograd.grad(function(x, w), w)
    found = []

    def run() -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.default_stream())
        with torch.cuda.stream(stream):
            for _ in range(20):
                (made,) = torch.autograd.grad(loaded(x, w), w)
        stream.synchronize()
        found.append(made)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for made in found:
        torch.testing.assert_close(made, want, rtol=1e-4, atol=1e-5)


ALONE = """
import os, sys
for name in ("triton", "fxstack", "inductor_codegen", "dynamo_capture", "aot_autograd", "fx_interface"):
    sys.modules[name] = None
os.environ["PATH"] = os.environ["CXX"] = ""
import torch
import fxstack_artifact
torch.backends.cuda.matmul.allow_tf32 = False
loaded = fxstack_artifact.load(sys.argv[1])
x, t = torch.load(sys.argv[2])
for _ in range(5):
    loaded.zero_grad()
    loaded(x, t)["loss"].backward()
    with torch.no_grad():
        for parameter in loaded.parameters():
            parameter.sub_(0.05 * parameter.grad)
torch.save(loaded.state_dict(), sys.argv[3])
"""


def test_no_compiler_is_needed(tmp_path: Path) -> None:
    given = batch(33)
    path = fxstack.aot_compile(classifier(), given, path=tmp_path / "m.fxa", training=True)
    torch.save(given, tmp_path / "x")
    subprocess.run([sys.executable, "-c", ALONE, path, tmp_path / "x", tmp_path / "y"], check=True)
    eager = classifier()
    for _ in range(5):
        eager.zero_grad()
        eager(*given)["loss"].backward()
        with torch.no_grad():
            for parameter in eager.parameters():
                parameter.sub_(0.05 * parameter.grad)
    for name, tensor in torch.load(tmp_path / "y").items():
        torch.testing.assert_close(tensor, eager.state_dict()[name], rtol=1e-3, atol=1e-4)
