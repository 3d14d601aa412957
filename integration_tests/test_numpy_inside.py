"""Numpy inside of compiled functions, under every backend: numpy's own numbers, dtypes, strides and memory."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import fxstack


def statistics(x: Tensor, a: Any) -> Any:
    y = torch.sin(x) * 2
    b = y.detach().numpy()
    scaled = (b - b.mean(axis=0)) / (b.std(axis=0) + 1)
    return torch.from_numpy(scaled) * x, np.linalg.norm(scaled, axis=1), scaled.sum(), a.T @ scaled


def written(x: Tensor, a: Any) -> Any:
    a[0] = 3
    a += np.sqrt(x.detach().numpy())
    a.T[1:] *= 2
    return torch.from_numpy(a).sum() + x.sum(), a


def numbers(x: Tensor, a: Any) -> Any:
    n = np.arange(12).reshape(3, 4) + a.astype(np.int64)
    return n // 5, n / 2, n.sum(axis=0), (n > 4).any(axis=1), np.sort(n % 7, axis=1), x * 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", [statistics, written, numbers], ids=lambda program: program.__name__)
def test_numpy_inside(program: Any, backend: str) -> None:
    fast = fxstack.compile(program, backend=backend, fullgraph=True)
    for scale in (1, 2):
        outcomes = []
        for run in (program, fast):
            x = torch.linspace(0.5, 2, 12).reshape(3, 4).requires_grad_()
            array = np.ones((3, 4), np.float32) * scale
            result = run(x, array)
            for part in result:
                if isinstance(part, Tensor) and part.requires_grad:
                    part.sum().backward(retain_graph=True)
            outcomes.append((*result, array, x.grad))
        for one, other in zip(*outcomes, strict=True):
            assert type(one) is type(other)
            if isinstance(one, np.ndarray):
                assert (one.dtype, one.strides) == (other.dtype, other.strides)
                np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)
            elif isinstance(one, np.generic):
                np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)
            else:
                torch.testing.assert_close(other, one)


def test_numpy_inside_loads_nothing_of_torchs_compiler() -> None:
    text = """
import sys, numpy as np, torch, fxstack
print(fxstack.compile(lambda x: np.cumsum(x.numpy()), fullgraph=True)(torch.ones(3)))
print([name for name in sys.modules if name.startswith(("torch._dynamo", "torch._inductor", "torch._functorch.aot"))])
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[1. 2. 3.]", "[]"]
