"""``generate`` of a language model: greedy, sampling, and with a cache of fixed size."""

from __future__ import annotations

from typing import Any

import torch
from programs import Compile, Program, Step


def _model() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 3, "vocab_size": 500}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    tokens = {"bos_token_id": 1, "eos_token_id": None, "pad_token_id": 0}
    return LlamaForCausalLM(LlamaConfig(**sizes, **heads, **tokens)).eval()


def _step(compile: Compile, **how: Any) -> Step:
    model = _model()
    model.forward = compile(model.forward)
    prompt = torch.randint(2, 500, (2, 12))
    given = {"attention_mask": torch.ones_like(prompt), "max_new_tokens": 12, "pad_token_id": 0}
    details = {"return_dict_in_generate": True, "output_scores": True}

    def step() -> Any:
        made = model.generate(prompt, **given, **details, **how)
        return made.sequences, made.scores

    return step


def greedy(compile: Compile) -> Step:
    return _step(compile, do_sample=False)


def sampling(compile: Compile) -> Step:
    return _step(compile, do_sample=True, top_k=20, top_p=0.9, temperature=0.8)


def static_cache(compile: Compile) -> Step:
    return _step(compile, do_sample=False, cache_implementation="static")


def whole_model(compile: Compile) -> Step:
    """The model itself is compiled, not its ``forward``."""
    model = compile(_model())
    prompt = torch.randint(2, 500, (2, 12))
    return lambda: model.generate(prompt, do_sample=False, max_new_tokens=12, pad_token_id=0)


NEEDS = ("transformers",)
PROGRAMS = (
    Program("generate, greedy", greedy, NEEDS, 3),
    Program("generate, sampling", sampling, NEEDS, 3),
    Program("generate, static cache", static_cache, NEEDS, 2),
    Program("generate of a compiled model", whole_model, NEEDS, 3),
)
