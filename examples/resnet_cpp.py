"""A residual network as one file, run by a C++ program in which there is no Python.

python examples/resnet_cpp.py       (needs cmake and a C++ compiler)
"""

from __future__ import annotations

import subprocess
import tempfile
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn

import fxstack

CPP = Path(__file__).resolve().parent.parent / "packages" / "artifact-loader" / "cpp"
TORCH_LIBRARIES = Path(torch.__file__).parent / "lib"


class Block(nn.Module):
    """Two convolutions beside a shortcut, which a third one brings to the same shape."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(after) for _ in range(3))
        self.shortcut = nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(images, before, rows, columns) to (images, after, rows / stride, columns / stride)."""
        y = torch.relu(self.norms[0](self.first(x)))
        return torch.relu(self.norms[1](self.second(y)) + self.norms[2](self.shortcut(x)))


def resnet() -> nn.Module:
    """Four blocks between a first convolution and a layer for ten classes."""
    torch.manual_seed(0)
    widths = (16, 16, 32, 64, 128)
    blocks = [Block(a, b, 1 if a == b else 2) for a, b in pairwise(widths)]
    first = nn.Conv2d(3, widths[0], 3, 1, 1)
    return nn.Sequential(first, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)).eval()


def build(folder: Path) -> Path:
    """The example program of the loader's C++ library: it runs an artifact on a ramp from 0 to 1."""
    configure = ["cmake", "-S", CPP, "-B", folder, f"-DTORCH_LIBRARIES={TORCH_LIBRARIES}"]
    for command in (configure, ["cmake", "--build", folder, "--target", "run_artifact"]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder / "run_artifact"


def main() -> None:
    """The C++ program, which gets no environment, computes what eager computes."""
    model, images = resnet(), fxstack.Dim("images", min=2, max=16)
    with tempfile.TemporaryDirectory() as name, torch.no_grad():
        folder = Path(name)
        artifact = folder / "resnet.fxa"
        shapes = {"input": {0: images}}
        fxstack.aot_compile(model, (torch.randn(4, 3, 32, 32),), path=artifact, dynamic_shapes=shapes)
        print(f"{artifact.name}: {artifact.stat().st_size / 1e6:.1f} MB, weights and kernels")
        program = build(folder / "build")
        for count in (2, 5):
            sizes = (count, 3, 32, 32)
            done = subprocess.run(
                [program, artifact, *map(str, sizes)], env={}, check=True, capture_output=True, text=True
            )
            scores = torch.tensor([float(line) for line in done.stdout.split()]).view(count, 10)
            ramp = torch.arange(count * 3 * 32 * 32, dtype=torch.float32).div(count * 3 * 32 * 32).view(sizes)
            torch.testing.assert_close(scores, model(ramp), rtol=1e-4, atol=1e-5)
            print(f"{count} images from C++: classes {scores.argmax(1).tolist()}")


if __name__ == "__main__":
    main()
