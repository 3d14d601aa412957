"""Artifacts on a CUDA device: written here, run where there is neither Triton nor a compiler nor the stack."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import fxstack
from benchmarks.models import WORKLOADS
from fxstack.artifacts.devices import GPU_TARGETS
from fxstack_artifact import ArtifactError, ContractError, _native

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.usefixtures("full_precision"),
]


class Mixed(nn.Module):
    """Pointwise, reductions of every kind, a library call, a transposed operand and a buffer that is written."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 96)
        self.register_buffer("calls", torch.zeros(96))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = functional.gelu(self.linear(x))
        self.calls.add_(y.sum(0))
        return functional.softmax(y, -1) + y.amax(1, keepdim=True), (y.T.contiguous() * 2).sum()


def mixed() -> tuple[Mixed, torch.Tensor]:
    torch.manual_seed(0)
    return Mixed().cuda().eval(), torch.randn(33, 64, device="cuda")


def written(tmp_path: Path, **arguments: Any) -> tuple[Mixed, torch.Tensor, Path]:
    model, x = mixed()
    return model, x, fxstack.aot_compile(model, (x,), path=tmp_path / "m.fxa", **arguments)


def test_results_are_those_of_the_process(tmp_path: Path) -> None:
    model, x, path = written(tmp_path)
    loaded, compiled = fxstack.load(path), fxstack.compile(model)
    major, minor = torch.cuda.get_device_capability(0)
    assert loaded.target == f"sm_{major}{minor}"
    assert {tensor.device for tensor in loaded.state_dict().values()} == {x.device}
    with torch.no_grad():
        for _ in range(3):
            for got, want in zip(loaded(x), compiled(x), strict=True):
                assert torch.equal(got, want)
        assert torch.equal(loaded.get_buffer("calls"), model.calls)
        eager = mixed()[0]
        for got, want in zip(fxstack.load(path)(x), eager(x), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


ALONE = """
import os, sys
for name in ("triton", "fxstack", "inductor_codegen", "dynamo_capture", "aot_autograd", "fx_interface"):
    sys.modules[name] = None
os.environ["PATH"] = os.environ["CXX"] = ""
import torch
import fxstack_artifact
torch.backends.cuda.matmul.allow_tf32 = False
loaded = fxstack_artifact.load(sys.argv[1])
with torch.no_grad():
    torch.save(loaded(torch.load(sys.argv[2])), sys.argv[3])
"""


def test_no_compiler_is_needed(tmp_path: Path) -> None:
    _, x, path = written(tmp_path)
    torch.save(x, tmp_path / "x")
    subprocess.run([sys.executable, "-c", ALONE, path, tmp_path / "x", tmp_path / "y"], check=True)
    with torch.no_grad():
        for got, want in zip(torch.load(tmp_path / "y"), fxstack.load(path)(x), strict=True):
            assert torch.equal(got, want)


@pytest.mark.parametrize("name", ["bert", "gpt2", "mlp", "resnet"])
def test_models(name: str, tmp_path: Path) -> None:
    model, inputs = WORKLOADS[name].build(training=False)
    model, inputs = model.cuda(), on_gpu(inputs)
    path = fxstack.aot_compile(model, (), inputs, path=tmp_path / "m.fxa")
    assert_equal_results(fxstack.load(path), model, inputs)


def on_gpu(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Without labels: some models then set what kind of problem it is in their configuration (FXS504)."""
    return {
        key: value.cuda() if isinstance(value, torch.Tensor) else value
        for key, value in inputs.items()
        if key != "labels"
    }


def assert_equal_results(loaded: Any, model: nn.Module, inputs: Mapping[str, Any]) -> None:
    with torch.no_grad():
        got, want = loaded(**inputs), model(**inputs)
    flat = [(a, b) for a, b in zip(tensors(got), tensors(want), strict=True) if a.is_floating_point()]
    assert flat
    for a, b in flat:
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


def tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if hasattr(value, "values") else value if isinstance(value, (list, tuple)) else ()
    return [tensor for item in items for tensor in tensors(item)]


def test_memory_that_begins_anywhere(tmp_path: Path) -> None:
    _, x, path = written(tmp_path)
    with torch.no_grad():
        for got, want in zip(fxstack.load(path)(odd(x)), fxstack.load(path)(x), strict=True):
            torch.testing.assert_close(got, want)


@pytest.mark.parametrize("shape", [(7, 100_000), (3, 1 << 20), (5000, 3), (1, 1)])
def test_sizes(shape: tuple[int, int], tmp_path: Path) -> None:
    """Rows that are held, split, side by side, and one number."""

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.sum(), x.sum(0), functional.log_softmax(x, -1), x.T.contiguous()

    x = torch.randn(shape, device="cuda")
    loaded = fxstack.load(fxstack.aot_compile(function, (x,), path=tmp_path / "m.fxa"))
    for got, want in zip(loaded(x), fxstack.compile(function)(x), strict=True):
        assert torch.equal(got, want)


def test_streams_and_threads(tmp_path: Path) -> None:
    """The current stream of the calling thread, and several threads at once."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return functional.softmax(x * 2, -1) @ x.T

    x = torch.randn(512, 512, device="cuda")
    loaded = fxstack.load(fxstack.aot_compile(function, (x,), path=tmp_path / "m.fxa"))
    want, found = loaded(x), []

    def run() -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.default_stream())
        with torch.cuda.stream(stream):
            for _ in range(20):
                made = loaded(x)
        stream.synchronize()
        found.append(made)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(torch.equal(made, want) for made in found)


def test_autocast_and_gradients_of_the_caller(tmp_path: Path) -> None:
    _, x, path = written(tmp_path)
    want = fxstack.load(path)(x)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        got = fxstack.load(path)(x)
    assert not got[0].requires_grad
    assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    _, x, path = written(tmp_path)
    loaded = fxstack.load(path)
    with pytest.raises(ContractError, match=r"FXA304.*GPU 0"):
        loaded(x.cpu())
    with pytest.raises(ContractError, match="FXA305"):
        loaded(x[:5])
    with pytest.raises(ArtifactError, match="FXA201"):
        fxstack.load(path, weights={"linear.weight": torch.zeros(96, 64)})


def odd(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers, in memory that begins at no multiple of 16 bytes."""
    memory = torch.empty(1 + tensor.numel(), dtype=tensor.dtype, device=tensor.device)
    return memory[1:].view_as(tensor).copy_(tensor)


def test_a_batch_that_varies(tmp_path: Path) -> None:
    """Sizes of every class of one range, and none that is outside of it."""
    model, x = mixed()
    shapes = {"x": {0: fxstack.Dim("batch", max=5000)}}
    loaded = fxstack.load(fxstack.aot_compile(model, (x,), path=tmp_path / "m.fxa", dynamic_shapes=shapes))
    eager = mixed()[0]
    with torch.no_grad():
        for batch in (2, 3, 5, 16, 17, 33, 64, 100, 256, 1000, 1024, 1040, 2049, 5000):
            x = torch.randn(batch, 64, device="cuda")
            for given in (x, odd(x)):
                for got, want in zip(loaded(given), eager(given), strict=True):
                    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-3)
        torch.testing.assert_close(loaded.get_buffer("calls"), eager.calls, rtol=1e-4, atol=1e-2)
        for batch in (1, 5001):
            with pytest.raises(ContractError, match="FXA305"):
                loaded(torch.ones(batch, 64, device="cuda"))


def test_two_sizes_without_bounds(tmp_path: Path) -> None:
    """Rows that are held, split and side by side, chosen at each launch. Whole numbers have one sum in any order."""

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.sum(), x.sum(0), x.sum(1), x.amax(1) - x.amin(1), (x.T + 1).contiguous(), x.argmax(1)

    def numbers(*shape: int) -> torch.Tensor:
        return torch.randint(-4, 5, shape, device="cuda").float()

    shapes = {"x": {0: "rows", 1: "columns"}}  # some 360 forms of kernels: a minute
    path = fxstack.aot_compile(function, (numbers(6, 10),), path=tmp_path / "m.fxa", dynamic_shapes=shapes)
    loaded = fxstack.load(path)
    sizes = [(2, 2), (7, 100_000), (3, 1 << 20), (5000, 3), (16, 4096), (33, 8193), (1024, 1024), (64, 48)]
    for shape in (*sizes, *(shape[::-1] for shape in sizes)):
        x = numbers(*shape)
        for given in (x, odd(x)):
            *got, at = loaded(given)
            *want, _ = function(given)
            assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True)), shape
            assert torch.equal(x.gather(1, at[:, None])[:, 0], x.amax(1)), shape


@pytest.mark.parametrize("name", ["bert", "gpt2", "mlp", "resnet"])
def test_models_whose_batch_varies(name: str, tmp_path: Path) -> None:
    model, inputs = WORKLOADS[name].build(training=False)
    model, inputs = model.cuda(), on_gpu(inputs)
    shapes = {key: {0: "batch"} for key in inputs}
    loaded = fxstack.load(
        fxstack.aot_compile(model, (), inputs, path=tmp_path / "m.fxa", dynamic_shapes=shapes)
    )
    for batch in (2, 3, 16, 33):
        given = {key: torch.cat([value] * batch)[:batch].contiguous() for key, value in inputs.items()}
        assert_equal_results(loaded, model, given)


def test_a_length_that_varies(tmp_path: Path) -> None:
    """In multiples of 16, as torch's attention may read masks of others otherwise."""
    model, inputs = WORKLOADS["bert"].build(training=False)
    model, inputs = model.cuda(), on_gpu(inputs)
    shapes = {key: {1: "length"} for key in inputs}
    loaded = fxstack.load(
        fxstack.aot_compile(model, (), inputs, path=tmp_path / "m.fxa", dynamic_shapes=shapes)
    )
    for length in (32, 64, 128, 208, 256):
        assert_equal_results(loaded, model, on_gpu(WORKLOADS["bert"].inputs(length)))


def test_several_architectures(tmp_path: Path) -> None:
    """The file has both; the one that runs here is chosen, and one for another GPU alone is refused."""
    own = own_architecture()
    other = "sm_80" if own == "sm_90" else "sm_90"
    _, x, path = written(tmp_path, target=("sm_80", "sm_90") if own in ("sm_80", "sm_90") else own)
    assert fxstack.load(path).target == own
    path = fxstack.aot_compile(mixed()[0], (x,), path=tmp_path / "other.fxa", target=other)
    with pytest.raises(ArtifactError, match=f"FXA105.*{other}"):
        fxstack.load(path)


def own_architecture() -> str:
    major, minor = torch.cuda.get_device_capability(0)
    own = f"sm_{major}{minor}"
    if own not in GPU_TARGETS:
        pytest.skip(f"no artifacts are made for {own}")
    return own


ON_CPU = """
import sys
import torch
import fxstack_artifact
loaded = fxstack_artifact.load(sys.argv[1])
with torch.no_grad():
    torch.save((loaded.target, loaded(torch.load(sys.argv[2]))), sys.argv[3])
"""


@pytest.mark.parametrize("begins", ["cpu", "cuda"])
def test_one_file_for_both(begins: str, tmp_path: Path) -> None:
    """The GPU where there is one, the processor where there is none or where the caller says so; weights once."""
    own, level = own_architecture(), _native.cpu_levels()[0]
    model, x = mixed()
    model, x = model.to(begins), x.to(begins)
    shapes = {"x": {0: fxstack.Dim("batch", max=100)}}
    path = fxstack.aot_compile(
        model, (x,), path=tmp_path / "both.fxa", target=(level, own), dynamic_shapes=shapes
    )
    assert {parameter.device.type for parameter in model.parameters()} == {begins}
    alone = fxstack.aot_compile(model, (x,), path=tmp_path / "alone.fxa", dynamic_shapes=shapes)
    sizes = [fxstack.inspect(file)["contents"]["weights.safetensors"] for file in (path, alone)]
    assert sizes[0] == sizes[1]
    for device, target in ((None, own), ("cuda", own), ("cpu", level)):
        loaded = fxstack.load(path, device=device)
        there = "cpu" if target == level else "cuda"
        assert loaded.target == target
        assert {tensor.device.type for tensor in loaded.state_dict().values()} == {there}
        eager = mixed()[0].to(there)
        with torch.no_grad():
            for batch in (2, 33, 100):
                given = torch.randn(batch, 64, device=there)
                for got, want in zip(loaded(given), eager(given), strict=True):
                    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
        with pytest.raises(ContractError, match="FXA304"):
            loaded(x.to("cuda" if there == "cpu" else "cpu"))
    given = torch.randn(7, 64)
    torch.save(given, tmp_path / "x")
    hidden = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-c", ON_CPU, path, tmp_path / "x", tmp_path / "y"]
    subprocess.run(command, check=True, env=hidden)
    target, results = torch.load(tmp_path / "y")
    assert target == level
    with torch.no_grad():
        for got, want in zip(results, mixed()[0].cpu()(given), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_one_file_that_trains_on_both(tmp_path: Path) -> None:
    own, level = own_architecture(), _native.cpu_levels()[0]
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).cuda()
    x = torch.randn(5, 8, device="cuda")
    path = fxstack.aot_compile(model, (x,), path=tmp_path / "m.fxa", training=True, target=(level, own))
    for there in ("cpu", "cuda"):
        loaded, eager = fxstack.load(path, device=there), copy.deepcopy(model).to(there)
        for one in (loaded, eager):
            one(x.to(there)).square().sum().backward()
        for ours, theirs in zip(loaded.parameters(), eager.parameters(), strict=True):
            assert ours.grad is not None
            assert ours.grad.device.type == there
            torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-4)
