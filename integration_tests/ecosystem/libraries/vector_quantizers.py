"""vector-quantize-pytorch: codebooks that are moved while a model is trained, and residual ones."""

from __future__ import annotations

from typing import Any

import torch
from programs import Compile, Program, Step, training_step
from torch import Tensor, nn


def moving_codebook(compile: Compile) -> Step:
    from vector_quantize_pytorch import VectorQuantize

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(16, 32), nn.Linear(32, 16)
            self.codes = VectorQuantize(dim=32, codebook_size=64, decay=0.8, commitment_weight=1.0)

        def forward(self, x: Tensor) -> Tensor:
            quantized, _, commitment = self.codes(self.first(x))
            return (self.last(quantized) - x).square().mean() + commitment.sum()

    model = Model()
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    compiled, x = compile(model), torch.randn(4, 50, 16)

    def loss() -> Tensor:
        model.load_state_dict(kept)
        made: Tensor = compiled(x)
        return made

    return training_step(model, loss)


def residual(compile: Compile) -> Step:
    from vector_quantize_pytorch import ResidualVQ

    model = ResidualVQ(dim=16, num_quantizers=4, codebook_size=32).eval()
    compiled, inputs = compile(model), [torch.randn(4, length, 16) for length in (40, 50, 60)]

    @torch.no_grad()
    def step() -> Any:
        return [compiled(x) for x in inputs]

    return step


PROGRAMS = (
    Program("vector-quantize, moving codebook", moving_codebook, ("vector_quantize_pytorch",), graphs=2),
    Program("vector-quantize, residual codes", residual, ("vector_quantize_pytorch",), graphs=2),
)
