"""The ways in which people use parts of the stack, each in a clean virtual environment."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

CAPTURE_ONLY = """
import json, torch, dynamo_capture

graphs = []

def ten_line_backend(graph_module, example_inputs):
    graphs.append([str(n.target) for n in graph_module.graph.nodes if n.op.startswith("call")])
    return graph_module.forward

def f(x, w):
    return torch.relu(x @ w) + 1.0

x, w = torch.randn(3, 4), torch.randn(4, 5)
compiled = dynamo_capture.optimize(ten_line_backend)(f)
assert torch.equal(compiled(x, w), f(x, w))
assert torch.equal(compiled(-x, w), f(-x, w))
print(json.dumps(graphs))
"""

EXAMPLE_BACKEND = """
import torch, fxstack, example_backend

model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.LayerNorm(8))
x = torch.randn(2, 8)
compiled = fxstack.compile(model, backend="example", fullgraph=True)
torch.testing.assert_close(compiled(x), model(x))
compiled(x).sum().backward()
assert model[0].weight.grad is not None
(source,) = example_backend.backend.sources
print(source)
"""


def _install(python: Path, wheels: Path, name: str) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps"]
    subprocess.run([*command, "--no-index", "--find-links", str(wheels), *name.split()], check=True)


def _run(python: Path, script: str, folder: Path) -> str:
    done = subprocess.run(
        [str(python), "-c", script], capture_output=True, text=True, check=False, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_capture_layer_alone(clean_environment: Path, wheels: Path, tmp_path: Path) -> None:
    command = [
        str(clean_environment),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--find-links",
        str(wheels),
    ]
    subprocess.run([*command, "dynamo-capture"], check=True)
    listed = subprocess.run(
        [str(clean_environment), "-m", "pip", "list", "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    ours = {entry["name"] for entry in json.loads(listed.stdout)} & {
        path.name.split("-")[0].replace("_", "-") for path in wheels.iterdir()
    }
    assert ours == {"dynamo-capture", "guards", "fx-interface"}
    (targets,) = json.loads(_run(clean_environment, CAPTURE_ONLY, tmp_path))
    assert len(targets) == 3


def test_another_codegen_package(clean_environment: Path, wheels: Path, tmp_path: Path) -> None:
    packages = "fx-interface guards dynamo-capture aot-autograd primtorch-decomps inductor-codegen fxstack"
    _install(clean_environment, wheels, packages + " example-backend")
    small = [str(clean_environment), "-m", "pip", "install", "--quiet", "platformdirs", "rich"]
    subprocess.run(small, check=True)
    assert "def compiled(" in _run(clean_environment, EXAMPLE_BACKEND, tmp_path)
