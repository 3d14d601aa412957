"""accelerate: a compiled model, its optimizer and its data are prepared; gradients are accumulated over batches."""

from __future__ import annotations

import copy
from typing import Any

import torch
from programs import Compile, Program, Step
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def _model() -> nn.Module:
    layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Linear(16, 64), nn.TransformerEncoder(layer, 2), nn.Linear(64, 4))


def _train(compile: Compile, precision: str, accumulate: int) -> Step:
    from accelerate import Accelerator

    plain = _model()
    accelerator = Accelerator(cpu=True, mixed_precision=precision, gradient_accumulation_steps=accumulate)
    data = TensorDataset(torch.randn(32, 20, 16), torch.randint(4, (32, 20)))
    compiled = compile(plain)
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.05)
    model, optimizer, batches = accelerator.prepare(compiled, optimizer, DataLoader(data, batch_size=8))
    start = copy.deepcopy(plain.state_dict())

    def step() -> Any:
        plain.load_state_dict(start)
        losses = []
        for inputs, labels in batches:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(inputs).float().flatten(0, 1), labels.flatten())
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(plain.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            losses.append(accelerator.gather_for_metrics(loss.detach()))
        return losses, [p.detach().clone() for p in accelerator.unwrap_model(model).parameters()]

    return step


def accumulated(compile: Compile) -> Step:
    return _train(compile, "no", 2)


NEEDS = ("accelerate",)
PROGRAMS = (Program("accelerate, prepare and accumulate", accumulated, NEEDS),)
