"""In a fresh process, compiling and running a model loads nothing of stock's compiler because of us."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

FORBIDDEN = (
    "torch._dynamo",
    "torch._inductor",
    "torch._functorch",
    "functorch",
    "torch._decomp",
    "torch._refs",
)
FORBIDDEN += ("torch._prims", "torch.export", "torch.fx.experimental", "sympy")
_OF_OLDER_PRODUCTS = ("torch.fx.experimental", "sympy") if torch.__version__ < "2.13" else ()
"""What torch before 2.13 itself loads where two tensors with symbolic sizes are multiplied."""

PROGRAM = """
import json, sys, torch
{prepare}
before = set(sys.modules)
import fxstack
for options in ({{}}, {{"dynamic": True}}):
    compiled = fxstack.compile(model, fullgraph=True, **options)
    for training in (False, True):
        with torch.set_grad_enabled(training):
            result = compiled(**inputs)
            loss = getattr(result, "loss", None)
            loss = result.square().mean() if loss is None else loss
            if training:
                loss.backward()
print(json.dumps(sorted(set(sys.modules) - before)))
"""

MODELS = str(Path(__file__).resolve().parent.parent / "benchmarks" / "models.py")

PLAIN = """
from torch import nn
model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Dropout(0.1), nn.Linear(16, 4), nn.Softmax(-1))
inputs = {"input": torch.randn(4, 8)}
"""

REGIONS = """
from torch import nn
from torch.utils.checkpoint import checkpoint
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        return grad * 2
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
    def forward(self, input):
        x = Double.apply(self.linear(input))
        return checkpoint(lambda x: nn.functional.dropout(self.linear(x).sin(), 0.1), x, use_reentrant=False)
model = Model()
inputs = {"input": torch.randn(4, 8)}
"""

STEERED = """
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
    def forward(self, input):
        x = torch.cond(input.sum() > 0, self.linear, lambda x: x.sin(), (input,))
        return torch.while_loop(lambda x: x.sum() < 1, lambda x: (x.exp() + 1,), (x,))[0]
model = Model()
inputs = {"input": torch.randn(4, 8)}
"""

PRODUCTS = """
from torch import nn
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.linear = nn.Linear(8, 8, bias=False)
    def forward(self, input):
        x = self.linear(input) @ self.weight
        x = torch.einsum("bij,kj->bik", x, self.weight)
        return nn.functional.scaled_dot_product_attention(x, x, x) + x.matmul(x.mT) @ x
model = Model()
inputs = {"input": torch.randn(4, 5, 8)}
"""

WORKLOAD = """
import importlib.util
spec = importlib.util.spec_from_file_location("models", {models!r})
models = importlib.util.module_from_spec(spec)
sys.modules["models"] = models
spec.loader.exec_module(models)
model, inputs = models.WORKLOADS["{name}"].build(training=True)
model(**inputs)
"""


@pytest.mark.parametrize(
    "name",
    ["plain", "regions", "steered", "products", "bert", pytest.param("resnet", marks=pytest.mark.nightly)],
)
def test_stock_compiler_is_not_loaded(name: str, tmp_path: Path) -> None:
    written = {"plain": PLAIN, "regions": REGIONS, "steered": STEERED, "products": PRODUCTS}
    prepare = written.get(name) or WORKLOAD.format(name=name, models=MODELS)
    program = PROGRAM.format(prepare=prepare)
    environment = dict(os.environ, FXSTACK_CACHE_DIR=str(tmp_path), HF_HUB_OFFLINE="1")
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout.splitlines()[-1])
    allowed = _OF_OLDER_PRODUCTS if name == "products" else ()
    assert [name for name in loaded if name.startswith(FORBIDDEN) and not name.startswith(allowed)] == []
    assert any(name.startswith("inductor_codegen") for name in loaded), "the model was not compiled"
