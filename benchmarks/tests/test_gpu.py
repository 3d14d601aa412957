"""A step's memory and time on a GPU."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from benchmarks.gpu import elapsed, interleaved, on_gpu, step_memory

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def test_memory_and_time_of_a_step() -> None:
    model, inputs = on_gpu(nn.Linear(256, 1024, bias=False), {"input": torch.randn(512, 256)})

    def step() -> None:
        for parameter in model.parameters():
            parameter.grad = None
        model(**inputs).sum().backward()

    found = step_memory(model, step)
    assert found["gradients"] == 256 * 1024 * 4
    assert found["peak"] >= found["before"] + 512 * 1024 * 4
    assert found["after"] >= found["before"] + found["gradients"]
    assert 0 < elapsed(step) < 10
    assert interleaved({"step": step}, 3)["step"] > 0
