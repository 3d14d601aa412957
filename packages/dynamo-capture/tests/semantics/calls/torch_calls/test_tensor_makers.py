"""Tensors of what the program knows: ``torch.tensor`` and its like."""

from __future__ import annotations

import numpy
import pytest
import torch
from torch.autograd import Variable

import dynamo_capture


def same(one, other):
    return (one.dtype, one.shape, one.tolist()) == (other.dtype, other.shape, other.tolist())


@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.tensor([[1, 2], [3, 4]]) + x,
        lambda x: torch.tensor([x.dim(), 2.5]) * x,
        lambda x: torch.tensor(x.shape[0]) + x.long(),
        lambda x: torch.as_tensor([True, False]) & (x > 0),
        lambda x: x + torch.Tensor([1, 2]),
        lambda x: torch.tensor([], dtype=torch.int8),
        lambda x: torch.tensor([1j, 2]) * x,
        lambda x: torch.tensor([numpy.float64(1.5), 1]),
        lambda x: torch.as_tensor(([numpy.int32(1)], [numpy.int8(2)])),
        lambda x: torch.asarray([numpy.float16(1), 2.5]),
        lambda x: torch.tensor(data=[numpy.sqrt(x.shape[0])]),
        lambda x: torch.tensor([numpy.float64(1)], dtype=torch.float16),
        lambda x: torch.tensor(numpy.complex128(2j), dtype=torch.complex64) * x,
        lambda x: torch.tensor(numpy.complex64(2j)),
        lambda x: torch.tensor([numpy.complex128(2j)]),
        lambda x: x * numpy.exp(-1j * numpy.pi / x.shape[0]),
        lambda x: Variable(x.data.new(2, 3).zero_()) + x.sum(),
        lambda x: Variable(data=x * 2, requires_grad=True),
    ],
)
def test_they_have_torchs_dtype_and_content(program):
    x = torch.tensor([1.0, -1.0])
    captured = dynamo_capture.optimize(lambda graph, examples: graph.forward, fullgraph=True)(program)
    assert same(captured(x), program(x))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: Variable(x).add_(1),
        lambda x: Variable(x.requires_grad_()) * x,
        lambda x: (Variable(x * x, requires_grad=True) * x).requires_grad,
        lambda x: Variable(torch.nn.Parameter(x)).requires_grad,
        lambda x: Variable(3),
        lambda x: Variable(x.long(), requires_grad=True),
        lambda x: isinstance(Variable(x), Variable),
        lambda x: torch.tensor([numpy.float64(1), x.sum()]),
    ],
)
def test_variables_have_the_memory_and_no_history(program):
    captured = dynamo_capture.optimize(lambda graph, examples: graph.forward)(program)
    found = [_outcome(function) for function in (program, captured)]
    assert found[0] == found[1]


def _outcome(function):
    x = torch.tensor([1.0, -1.0])
    try:
        found = function(x)
    except Exception as error:
        return type(error), str(error), x.tolist()
    if isinstance(found, torch.Tensor):
        found = (found.dtype, found.tolist(), found.requires_grad, found.data_ptr() == x.data_ptr())
    return found, x.tolist()
