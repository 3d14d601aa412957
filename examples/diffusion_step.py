"""A step of a diffusion model: a small U-Net predicts noise, and a sampler takes it away.

python examples/diffusion_step.py
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import fxstack


class Residual(nn.Module):
    """Two convolutions, told the time between them."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first, self.second = (
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.Conv2d(outputs, outputs, 3, padding=1),
        )
        self.norm, self.time = nn.GroupNorm(4, outputs), nn.Linear(32, outputs)
        self.skip = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        """(batch, inputs, height, width) and (batch, 32)."""
        h = F.silu(self.norm(self.first(x))) + self.time(time)[:, :, None, None]
        return self.skip(x) + self.second(F.silu(h))


class UNet(nn.Module):
    """Down once, up once."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.middle, self.up = Residual(3, 16), Residual(16, 32), Residual(48, 16)
        self.out = nn.Conv2d(16, 3, 1)

    def forward(self, x: Tensor, step: Tensor) -> Tensor:
        """The noise in images (batch, 3, height, width) at steps (batch,)."""
        rates = torch.exp(torch.arange(16) * (-math.log(1000.0) / 16))
        angles = step[:, None] * rates
        time = torch.cat([angles.sin(), angles.cos()], 1)
        high = self.down(x, time)
        low = self.middle(F.avg_pool2d(high, 2), time)
        noise: Tensor = self.out(self.up(torch.cat([high, F.interpolate(low, scale_factor=2.0)], 1), time))
        return noise


def sampler(model: nn.Module) -> Callable[[Tensor, Tensor], Tensor]:
    """One step of sampling by ``model``."""

    def step(x: Tensor, t: Tensor) -> Tensor:
        now, then = torch.cos(t / 1000)[:, None, None, None], torch.cos((t - 50) / 1000)[:, None, None, None]
        noise = model(x, t)
        clean = (x - (1 - now**2).sqrt() * noise) / now
        return then * clean + (1 - then**2).sqrt() * noise

    return step


@torch.no_grad()
def sample(step: Callable[[Tensor, Tensor], Tensor]) -> tuple[Tensor, float]:
    """Images after some steps, and the time of one of them."""
    torch.manual_seed(1)
    x = torch.randn(2, 3, 32, 32)
    start = 0.0
    for number in range(10):
        if number == 1:
            start = time.perf_counter()
        x = step(x, torch.full((2,), 1000.0 - 50 * number))
    return x, (time.perf_counter() - start) / 9


def main() -> None:
    """Eager and compiled give the same images."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    step = sampler(UNet().eval())
    (wanted, eager), (found, compiled) = sample(step), sample(fxstack.compile(step, fullgraph=True))
    torch.testing.assert_close(found, wanted, atol=1e-4, rtol=1e-4)
    print(f"a step: {eager * 1e3:.2f} ms in eager, {compiled * 1e3:.2f} ms compiled")


if __name__ == "__main__":
    main()
