"""Modules that `torch.ao.quantization` prepares for training: observers get their sizes in the first call."""

from __future__ import annotations

import copy
import warnings

import torch
from torch import nn

import fxstack


def _prepared() -> nn.Module:
    from torch.ao import quantization

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stubs = quantization.QuantStub(), quantization.DeQuantStub()
        model = nn.Sequential(stubs[0], nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4), stubs[1])
        model.qconfig = quantization.get_default_qat_qconfig("x86")
        quantization.prepare_qat(model.train(), inplace=True)
    return model


def test_all_steps_equal_eager_and_all_but_the_first_are_one_graph() -> None:
    torch.manual_seed(0)
    model = _prepared()
    plain = copy.deepcopy(model)
    compiled = fxstack.compile(model)
    for _ in range(3):
        x = torch.randn(4, 8)
        for one in (compiled, plain):
            one.zero_grad()
            one(x).square().mean().backward()
        for found, expected in zip(model.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(found.grad, expected.grad)
        for found, expected in zip(model.buffers(), plain.buffers(), strict=True):
            torch.testing.assert_close(found, expected)
    report = compiled.__fxstack_capture__.report
    assert "Sequential" in [code.co_name for code, made in report.replacements if made.graph is not None]
