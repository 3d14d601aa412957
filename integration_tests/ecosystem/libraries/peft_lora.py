"""PEFT: low-rank adapters over a language model, trained, switched off, and merged."""

from __future__ import annotations

from typing import Any

import torch
from programs import Compile, Program, Step, training_step


def _model(**how: Any) -> Any:
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 3, "vocab_size": 300}
    model = LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2))
    lora = LoraConfig(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj", "down_proj"], **how)
    return get_peft_model(model, lora)


def _tokens() -> torch.Tensor:
    return torch.randint(1, 300, (4, 32))


def training(compile: Compile) -> Step:
    model, tokens = _model(lora_dropout=0.0), _tokens()
    compiled = compile(model)
    return training_step(model, lambda: compiled(input_ids=tokens, labels=tokens).loss)


def dropout(compile: Compile) -> Step:
    """Dropout before the adapters; stock's compiler draws other random numbers than eager."""
    model, tokens = _model(lora_dropout=0.1, use_dora=True), _tokens()
    compiled = compile(model)
    return training_step(model, lambda: compiled(input_ids=tokens, labels=tokens).loss)


def switched(compile: Compile) -> Step:
    """With and without the adapters, in turn."""
    model, tokens = _model(init_lora_weights=False).eval(), _tokens()
    compiled = compile(model)

    def step() -> Any:
        with torch.no_grad():
            adapted = compiled(input_ids=tokens).logits
            with model.disable_adapter():
                plain = compiled(input_ids=tokens).logits
        return adapted, plain

    return step


def merged(compile: Compile) -> Step:
    model, tokens = _model(init_lora_weights=False).eval().merge_and_unload(), _tokens()
    compiled = compile(model)

    def step() -> Any:
        with torch.no_grad():
            return compiled(input_ids=tokens).logits

    return step


NEEDS = ("peft", "transformers")
PROGRAMS = (
    Program("LoRA, training", training, NEEDS),
    Program("DoRA with dropout, training", dropout, NEEDS),
    Program("LoRA switched on and off", switched, NEEDS, 2),
    Program("LoRA merged", merged, NEEDS),
)
