"""Networks for images that ``transformers`` does not have: MobileNetV3, DenseNet, MLP-Mixer and a U-Net's block.

Written from the papers, at their usual sizes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LARGE_V3 = (
    # kernel, width inside, width of the result, squeeze-and-excite, hardswish, stride
    (3, 16, 16, False, False, 1),
    (3, 64, 24, False, False, 2),
    (3, 72, 24, False, False, 1),
    (5, 72, 40, True, False, 2),
    (5, 120, 40, True, False, 1),
    (5, 120, 40, True, False, 1),
    (3, 240, 80, False, True, 2),
    (3, 200, 80, False, True, 1),
    (3, 184, 80, False, True, 1),
    (3, 184, 80, False, True, 1),
    (3, 480, 112, True, True, 1),
    (3, 672, 112, True, True, 1),
    (5, 672, 160, True, True, 2),
    (5, 960, 160, True, True, 1),
    (5, 960, 160, True, True, 1),
)
"""MobileNetV3-Large (Howard et al. 2019, table 1)."""


def _convolution(given: int, made: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(given, made, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(made)
    )


class _Excite(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.down = nn.Conv2d(width, width // 4, 1)
        self.up = nn.Conv2d(width // 4, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        scale = self.up(F.relu(self.down(x.mean((2, 3), keepdim=True))))
        return x * F.hardsigmoid(scale)


class _InvertedResidual(nn.Module):
    def __init__(
        self, given: int, kernel: int, inside: int, made: int, excite: bool, hard: bool, stride: int
    ):
        super().__init__()
        act = nn.Hardswish if hard else nn.ReLU
        self.expand = (
            nn.Sequential(_convolution(given, inside, 1), act()) if inside != given else nn.Identity()
        )
        self.depthwise = nn.Sequential(_convolution(inside, inside, kernel, stride, inside), act())
        self.excite = _Excite(inside) if excite else nn.Identity()
        self.project = _convolution(inside, made, 1)
        self.residual = stride == 1 and given == made

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.project(self.excite(self.depthwise(self.expand(x))))
        return x + y if self.residual else y


class MobileNetV3(nn.Module):
    """MobileNetV3-Large with 1,000 classes."""

    def __init__(self) -> None:
        super().__init__()
        blocks: list[nn.Module] = [_convolution(3, 16, 3, 2), nn.Hardswish()]
        width = 16
        for kernel, inside, made, excite, hard, stride in LARGE_V3:
            blocks.append(_InvertedResidual(width, kernel, inside, made, excite, hard, stride))
            width = made
        self.features = nn.Sequential(*blocks, _convolution(width, 960, 1), nn.Hardswish())
        self.head = nn.Sequential(nn.Linear(960, 1280), nn.Hardswish(), nn.Linear(1280, 1000))

    def forward(self, pixel_values: Tensor) -> Tensor:
        """pixel_values: (batch, 3, height, width) -> (batch, 1000)."""
        made: Tensor = self.head(self.features(pixel_values).mean((2, 3)))
        return made


class _DenseLayer(nn.Module):
    def __init__(self, given: int, growth: int) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.BatchNorm2d(given), nn.ReLU(), nn.Conv2d(given, 4 * growth, 1, bias=False)
        )
        self.second = nn.Sequential(
            nn.BatchNorm2d(4 * growth), nn.ReLU(), nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.second(self.first(x))], 1)


class DenseNet(nn.Module):
    """DenseNet-121 (Huang et al. 2017) with 1,000 classes."""

    def __init__(self, growth: int = 32, depths: tuple[int, ...] = (6, 12, 24, 16)) -> None:
        super().__init__()
        width = 2 * growth
        blocks: list[nn.Module] = [
            nn.Conv2d(3, width, 7, 2, 3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        ]
        for place, depth in enumerate(depths):
            for _ in range(depth):
                blocks.append(_DenseLayer(width, growth))
                width += growth
            if place + 1 < len(depths):
                blocks += [nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width // 2, 1, bias=False)]
                blocks.append(nn.AvgPool2d(2))
                width //= 2
        self.features = nn.Sequential(*blocks, nn.BatchNorm2d(width), nn.ReLU())
        self.head = nn.Linear(width, 1000)

    def forward(self, pixel_values: Tensor) -> Tensor:
        """pixel_values: (batch, 3, height, width) -> (batch, 1000)."""
        made: Tensor = self.head(self.features(pixel_values).mean((2, 3)))
        return made


class _MixerBlock(nn.Module):
    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        self.norm_of_tokens = nn.LayerNorm(width)
        self.tokens = nn.Sequential(nn.Linear(patches, width // 2), nn.GELU(), nn.Linear(width // 2, patches))
        self.norm_of_channels = nn.LayerNorm(width)
        self.channels = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.norm_of_tokens(x).mT).mT
        made: Tensor = x + self.channels(self.norm_of_channels(x))
        return made


class MLPMixer(nn.Module):
    """MLP-Mixer B/16 (Tolstikhin et al. 2021) with 1,000 classes, for images of 224 x 224."""

    def __init__(self, width: int = 768, depth: int = 12) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.blocks = nn.Sequential(*(_MixerBlock(196, width) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1000)

    def forward(self, pixel_values: Tensor) -> Tensor:
        """pixel_values: (batch, 3, 224, 224) -> (batch, 1000)."""
        x = self.blocks(self.patches(pixel_values).flatten(2).mT)
        made: Tensor = self.head(self.norm(x).mean(1))
        return made


class UNetBlock(nn.Module):
    """A block of a diffusion model's U-Net (Ho et al. 2020): group norm, SiLU, convolutions, a time, self-attention."""

    def __init__(self, width: int = 320, times: int = 1280, heads: int = 8) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(32, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1))
        self.time = nn.Sequential(nn.SiLU(), nn.Linear(times, width))
        self.second = nn.Sequential(nn.GroupNorm(32, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1))
        self.norm = nn.GroupNorm(32, width)
        self.joined = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.heads = heads

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        """x: (batch, width, height, width), time: (batch, times) -> as x."""
        x = x + self.second(self.first(x) + self.time(time)[:, :, None, None])
        rows = self.norm(x).flatten(2).mT
        query, key, value = (
            part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in self.joined(rows).chunk(3, 2)
        )
        mixed = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).flatten(2)
        made: Tensor = x + self.out(mixed).mT.unflatten(2, x.shape[2:])
        return made
