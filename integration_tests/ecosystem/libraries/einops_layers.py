"""einops: its layers and functions in a small vision transformer."""

from __future__ import annotations

import torch
from programs import Compile, Program, Step, training_step
from torch import Tensor, nn
from torch.nn import functional as F


def _model() -> nn.Module:
    from einops import einsum, pack, rearrange, reduce, repeat, unpack
    from einops.layers.torch import Rearrange

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.qkv, self.out = nn.LayerNorm(64), nn.Linear(64, 192), nn.Linear(64, 64)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = rearrange(self.qkv(self.norm(x)), "b n (three h d) -> three b h n d", three=3, h=4)
            scores = einsum(q, k, "b h i d, b h j d -> b h i j") * 16**-0.5
            mixed = einsum(scores.softmax(-1), v, "b h i j, b h j d -> b h i d")
            return x + self.out(rearrange(mixed, "b h n d -> b n (h d)"))

    class Vision(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = nn.Sequential(
                Rearrange("b c (h p) (w q) -> b (h w) (p q c)", p=4, q=4), nn.Linear(48, 64)
            )
            self.token = nn.Parameter(torch.randn(64))
            self.blocks = nn.Sequential(Attention(), Attention())
            self.head = nn.Linear(64, 10)

        def forward(self, images: Tensor) -> Tensor:
            first = repeat(self.token, "d -> b d", b=images.shape[0])
            x, sizes = pack([first, self.patches(images)], "b * d")
            _, patches = unpack(self.blocks(x), sizes, "b * d")
            return self.head(reduce(patches, "b n d -> b d", "mean"))

    return Vision()


def training(compile: Compile) -> Step:
    model = _model()
    compiled, images, labels = compile(model), torch.randn(4, 3, 32, 32), torch.randint(10, (4,))
    return training_step(model, lambda: F.cross_entropy(compiled(images), labels))


def sizes_that_vary(compile: Compile) -> Step:
    model = _model()
    compiled, images = compile(model), [torch.randn(4, 3, height, 32) for height in (32, 40, 48)]

    def loss() -> Tensor:
        return torch.stack([compiled(image).square().mean() for image in images]).sum()

    return training_step(model, loss)


PROGRAMS = (
    Program("einops, training", training, ("einops",)),
    Program("einops, sizes that vary", sizes_that_vary, ("einops",), graphs=2),
)
