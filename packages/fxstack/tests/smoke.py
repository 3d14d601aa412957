"""What the installed package must do at least; ``nox -s release-check`` runs it outside of the repository."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import fxstack


@fxstack.compile
def step(x: Tensor, weight: Tensor) -> Tensor:
    """The first program of the README."""
    return torch.softmax(torch.tanh(x @ weight) * 0.5, dim=-1)


def command(*arguments: str) -> Any:
    """What the installed command line prints with ``--json``."""
    program = Path(sys.executable).with_name("fxstack")
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def main() -> None:
    """The README's program, a training step, an artifact, and the command line."""
    x, weight = torch.randn(8, 16), torch.randn(16, 4)
    torch.testing.assert_close(step(x, weight), torch.softmax(torch.tanh(x @ weight) * 0.5, dim=-1))

    model = nn.Sequential(nn.Linear(16, 8), nn.GELU(), nn.Linear(8, 2))
    fast = fxstack.compile(model, fullgraph=True)
    model(x).square().sum().backward()
    wanted = model[0].weight.grad
    model.zero_grad()
    fast(x).square().sum().backward()
    torch.testing.assert_close(model[0].weight.grad, wanted)

    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        path = Path(folder) / "model.fxa"
        fxstack.aot_compile(model.eval(), (x,), path=path)
        torch.testing.assert_close(fxstack.load(path)(x), model(x))

    backends = json.dumps(command("backends", "--json"))
    assert "inductor" in backends
    assert "aot_eager" in backends
    assert command("doctor", "--json")


if __name__ == "__main__":
    main()
