"""torchao: a small model quantised in place, then compiled."""

from __future__ import annotations

from typing import Any

import torch
from programs import Compile, Program, Step
from torch import nn


def _model() -> nn.Module:
    hidden = [nn.Linear(256, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 512), nn.GELU()]
    return nn.Sequential(*hidden, nn.Linear(512, 64)).eval()


def _step(compile: Compile, config: Any, dtype: torch.dtype = torch.float32) -> Step:
    from torchao.quantization import quantize_

    model, x = _model().to(dtype), torch.randn(64, 256, dtype=dtype)
    quantize_(model, config)
    compiled = compile(model)

    def step() -> Any:
        with torch.no_grad():
            return compiled(x)

    return step


def weight_only(compile: Compile) -> Step:
    from torchao.quantization import Int8WeightOnlyConfig

    return _step(compile, Int8WeightOnlyConfig(version=2))


def dynamic(compile: Compile) -> Step:
    from torchao.quantization import Int8DynamicActivationInt8WeightConfig

    return _step(compile, Int8DynamicActivationInt8WeightConfig(version=2))


def float8_weights(compile: Compile) -> Step:
    from torchao.quantization import Float8WeightOnlyConfig

    return _step(compile, Float8WeightOnlyConfig(), torch.bfloat16)


NEEDS = ("torchao",)
PROGRAMS = (
    Program("torchao, int8 weights", weight_only, NEEDS),
    Program("torchao, int8 weights and activations", dynamic, NEEDS),
    Program("torchao, float8 weights", float8_weights, NEEDS),
)
