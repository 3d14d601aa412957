"""x-transformers, which is written with einops: texts of several lengths in a step."""

from __future__ import annotations

import torch
from programs import Compile, Program, Step, training_step
from torch import Tensor

LENGTHS = (24, 32, 40)


def decoder(compile: Compile) -> Step:
    from x_transformers import Decoder, TransformerWrapper

    layers = Decoder(
        dim=64, depth=2, heads=4, attn_dim_head=32, rotary_pos_emb=True, ff_glu=True, attn_qk_norm=True
    )
    model = TransformerWrapper(num_tokens=100, max_seq_len=64, attn_layers=layers)
    compiled, texts = compile(model), [torch.randint(100, (4, length)) for length in LENGTHS]

    def loss() -> Tensor:
        return torch.stack([compiled(text).float().square().mean() for text in texts]).sum()

    return training_step(model, loss)


def generation(compile: Compile) -> Step:
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    layers = Decoder(dim=64, depth=2, heads=4, attn_dim_head=16)
    model = AutoregressiveWrapper(
        TransformerWrapper(num_tokens=100, max_seq_len=64, attn_layers=layers)
    ).eval()
    model.net = compile(model.net)
    prompt = torch.randint(100, (2, 8))

    @torch.no_grad()
    def step() -> Tensor:
        made: Tensor = model.generate(prompt, 16, temperature=0.0, cache_kv=True)
        return made

    return step


PROGRAMS = (
    Program("x-transformers, decoder at three lengths", decoder, ("x_transformers",), graphs=2),
    Program("x-transformers, generate with a cache", generation, ("x_transformers",), graphs=3),
)
