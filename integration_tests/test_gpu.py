"""Real models on a CUDA device: Triton kernels, equal to eager in inference and training, without a graph break."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import fxstack
from benchmarks.models import WORKLOADS

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.usefixtures("full_precision"),
]
TOLERANCE = 1e-4
NAMES = ["bert", "gpt2", "mlp", "resnet"]


def on_gpu(name: str, *, training: bool) -> tuple[nn.Module, dict[str, Any]]:
    model, inputs = WORKLOADS[name].build(training=training)
    moved = {key: value.cuda() if isinstance(value, torch.Tensor) else value for key, value in inputs.items()}
    return model.cuda(), moved


def first_tensor(output: Any) -> torch.Tensor:
    while not isinstance(output, torch.Tensor):
        output = next(iter(output.values())) if hasattr(output, "values") else output[0]
    return output


def error(ours: torch.Tensor, theirs: torch.Tensor, scale: float = 0.0) -> float:
    return float((ours - theirs).abs().max() / (theirs.abs().max() + scale + 1e-30))


@pytest.mark.parametrize("name", NAMES)
def test_inference_equals_eager(name: str) -> None:
    model, inputs = on_gpu(name, training=False)
    with torch.no_grad():
        ours = first_tensor(fxstack.compile(model, fullgraph=True)(**inputs))
        theirs = first_tensor(model(**inputs))
    assert ours.is_cuda
    assert error(ours, theirs) <= TOLERANCE


@pytest.mark.parametrize("name", NAMES)
def test_training_is_as_near_to_float64_as_eager(name: str) -> None:
    model, inputs = on_gpu(name, training=True)
    reference, exact = copy.deepcopy(model), copy.deepcopy(model).double()
    compiled = fxstack.compile(model, fullgraph=True)
    for one in (compiled, reference, exact):
        dtype = torch.float64 if one is exact else torch.float32
        result = first_tensor(one(**{name: _of(value, dtype) for name, value in inputs.items()}))
        weights = torch.linspace(-1, 1, result.numel(), device="cuda").view_as(result)
        (result * weights).sum().backward()
    gradients = [parameter.grad for parameter in exact.parameters() if parameter.grad is not None]
    scale = 1e-4 * max(float(gradient.abs().max()) for gradient in gradients)
    parameters = zip(model.parameters(), reference.parameters(), exact.parameters(), strict=True)
    for ours, theirs, true in parameters:
        if true.grad is not None:
            assert ours.grad is not None
            assert theirs.grad is not None
            allowed = max(TOLERANCE, 4 * error(theirs.grad, true.grad, scale))
            assert error(ours.grad, true.grad, scale) <= allowed


def _of(value: Any, dtype: torch.dtype) -> Any:
    """Floating-point tensors as ``dtype``."""
    return value.to(dtype) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


class Scaled(nn.Module):
    """Numbers on the CPU: made inside, kept as an attribute, computed with, and returned; an index."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(16, 16)
        self.factor = torch.tensor(0.5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale = torch.sqrt(torch.tensor(x.size(-1), dtype=torch.float) * 3)
        shift = torch.exp(self.factor)
        y = self.inner(x) / scale.to(x.dtype) + shift * torch.tensor(2)
        return y[torch.tensor([1, 0])].sin(), shift


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_numbers_on_the_cpu(dtype: torch.dtype, caplog: pytest.LogCaptureFixture) -> None:
    """They are no reason to leave a graph to eager."""
    model = Scaled().cuda().to(dtype)
    compiled = fxstack.compile(copy.deepcopy(model), fullgraph=True)
    x = torch.randn(4, 16, device="cuda", dtype=dtype)
    for factor in (0.5, 1.5):
        model.factor.fill_(factor)
        compiled.factor.fill_(factor)
        given = [x.clone().requires_grad_() for _ in range(2)]
        results = [module(each) for module, each in zip((compiled, model), given, strict=True)]
        for result in results:
            result[0].float().square().sum().backward()
        assert error(results[0][0], results[1][0]) <= (TOLERANCE if dtype is torch.float32 else 0.02)
        assert error(*[each.grad for each in given]) <= (TOLERANCE if dtype is torch.float32 else 0.02)
        assert results[0][1].device.type == "cpu"
        assert torch.equal(results[0][1], results[1][1])
    assert not [record for record in caplog.records if "IND1" in record.getMessage()]


def test_deberta(caplog: pytest.LogCaptureFixture) -> None:
    """Its attention divides by the square root of a tensor on the CPU."""
    transformers = pytest.importorskip("transformers")
    config = transformers.DebertaV2Config(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        vocab_size=100,
        relative_attention=True,
        pos_att_type="p2c|c2p",
    )
    model = transformers.DebertaV2Model(config).eval().cuda()
    ids = torch.randint(0, 100, (2, 9), device="cuda")
    with torch.no_grad():
        ours = first_tensor(fxstack.compile(model, fullgraph=True)(ids))
        theirs = first_tensor(model(ids))
    assert error(ours, theirs) <= TOLERANCE
    assert not [record for record in caplog.records if "IND1" in record.getMessage()]


def test_numbers_of_the_program_are_not_copied() -> None:
    """A kernel is written with them, or given them: the host never waits for the GPU."""

    def program(x: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
        scale = torch.sqrt(torch.tensor(x.size(-1), dtype=torch.float) * 3)
        return x / scale.to(x.dtype) * factor + torch.tensor(0.5).to(x.device)

    x, factor = torch.randn(4, 64, device="cuda", dtype=torch.bfloat16), torch.tensor(1.5)
    compiled = fxstack.compile(program, fullgraph=True)
    assert torch.equal(compiled(x, factor), program(x, factor))
    torch.cuda.set_sync_debug_mode("error")
    try:
        compiled(x, factor)
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_questions_about_devices() -> None:
    """As transformers' experts ask: one graph."""

    def program(x: torch.Tensor) -> tuple[Any, ...]:
        properties = torch.cuda.get_device_properties(x.device)
        asked = (
            torch.cuda.get_device_capability(x.device),
            torch.cuda.get_device_name(),
            torch.cuda.device_count(),
        )
        known = properties.major, properties.multi_processor_count, torch.cuda.is_bf16_supported()
        return x + 1, *asked, *known, torch.cuda.current_device(), torch.cuda.is_initialized()

    x = torch.ones(3, device="cuda")
    assert fxstack.compile(program, fullgraph=True)(x)[1:] == program(x)[1:]


FOUND = """
import sys
from pathlib import Path
import torch
import fxstack
from inductor_codegen.codegen.triton.launch.kernels import KernelLoader
from inductor_codegen.toolchain.kernel_processes import Batch

def fail(*_):
    raise AssertionError("Triton is asked for a kernel")

KernelLoader._load = fail
wait, made, cache = Batch.wait, [], Path(sys.argv[1])
compiled = lambda: sum(file.name != "begin.cubin" for file in cache.rglob("*.cubin"))

def counted(batch):
    wait(batch)
    made.append(compiled())

Batch.wait = counted
layers = torch.nn.Linear(64, 48), torch.nn.BatchNorm1d(48), torch.nn.GELU(), torch.nn.Softmax(1)
model = torch.nn.Sequential(*layers).cuda()
run = fxstack.compile(model)
for _ in range(2):
    run(torch.randn(4096, 64, device="cuda")).square().sum().backward()
print(made[-1], compiled())
"""


def test_launches_find_kernels_that_other_processes_compiled(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "TRITON_CACHE_DIR": str(tmp_path / "t"),
        "FXSTACK_CACHE_DIR": str(tmp_path / "f"),
    }
    command = [sys.executable, "-c", FOUND, str(tmp_path / "t")]
    printed = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout.split()
    assert int(printed[0]) >= 4
    assert printed[0] == printed[1]


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.NAdam])
def test_optimizers_count_on_the_cpu(kind: Any) -> None:
    """Their counters lie there, and what follows from them is read by kernels of the GPU."""
    models = [nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)).cuda() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    optimizers = [kind(model.parameters(), lr=0.01) for model in models]
    steps = [fxstack.compile(optimizers[0].step), optimizers[1].step]
    for _ in range(4):
        x = torch.randn(5, 8, device="cuda")
        for model, step in zip(models, steps, strict=True):
            model.zero_grad()
            model(x).square().sum().backward()
            step()
    for ours, theirs in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert error(ours.detach(), theirs.detach()) <= TOLERANCE
    for ours, theirs in zip(optimizers[0].state.values(), optimizers[1].state.values(), strict=True):
        assert torch.equal(ours["step"], theirs["step"])
