"""``Trainer``: a compiled model is trained for a few steps, with clipping, a schedule, and an evaluation."""

from __future__ import annotations

import copy
import tempfile
from typing import Any

import torch
from programs import Compile, Program, Step
from torch import nn


def _bert() -> Any:
    from transformers import BertConfig, BertForSequenceClassification

    sizes = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 3, "vocab_size": 300}
    return BertForSequenceClassification(BertConfig(**sizes, num_attention_heads=4, num_labels=3))


def _gpt2() -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config(n_embd=128, n_layer=3, n_head=4, vocab_size=300, n_positions=64))


def _rows(count: int, labels: int | None) -> list[dict[str, Any]]:
    """Of 24 tokens: with one label each, or with the tokens themselves as labels."""
    made = []
    for _ in range(count):
        tokens = torch.randint(1, 300, (24,))
        made.append({"input_ids": tokens, "attention_mask": torch.ones_like(tokens)})
        made[-1]["labels"] = tokens if labels is None else torch.randint(labels, ())
    return made


def _fit(compile: Compile, model: nn.Module, labels: int | None) -> Step:
    from transformers import Trainer, TrainingArguments

    rows, start = _rows(32, labels), copy.deepcopy(model.state_dict())
    folder = tempfile.mkdtemp(prefix="ecosystem-trainer-")
    how = {"per_device_train_batch_size": 4, "max_steps": 6, "use_cpu": True, "disable_tqdm": True, "seed": 1}
    how |= {"adam_epsilon": 1e-3}  # a gradient that is all rounding moves its parameter by rounding
    quiet = {"report_to": [], "save_strategy": "no", "logging_steps": 1, "log_level": "error"}
    quiet |= {"remove_unused_columns": False}  # stock's compiled module has no signature to choose them by
    compiled = compile(model)

    def step() -> Any:
        model.load_state_dict(start)
        arguments = TrainingArguments(folder, **how, **quiet, eval_strategy="steps", eval_steps=6)
        trainer = Trainer(compiled, arguments, train_dataset=rows, eval_dataset=rows[:8])
        trainer.remove_callback(_printer())
        trainer.train()
        told = [row[key] for row in trainer.state.log_history for key in ("loss", "eval_loss") if key in row]
        return torch.tensor(told), [p.detach().clone() for p in model.parameters()]

    return step


def _printer() -> Any:
    from transformers.trainer_callback import PrinterCallback

    return PrinterCallback


def classifier(compile: Compile) -> Step:
    return _fit(compile, _bert(), 3)


def language_model(compile: Compile) -> Step:
    return _fit(compile, _gpt2(), None)


NEEDS = ("transformers", "accelerate")
PROGRAMS = (
    Program("Trainer, BERT classifier", classifier, NEEDS, 3, rounds=7),
    Program("Trainer, GPT-2", language_model, NEEDS, 2, rounds=7),
)
