"""Small programs on a CUDA device: dtypes, alignment, sizes that change, writes, random numbers, autocast, threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import fxstack

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.usefixtures("full_precision"),
]
FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    assert ours.is_cuda == theirs.is_cuda
    tolerance = TOLERANCE.get(theirs.dtype, 0)
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance, equal_nan=True)
    assert ours.stride() == theirs.stride()


def same(function: Callable[..., Any], *calls: tuple[Any, ...]) -> None:
    """The compiled function gives eager's results on each of the calls."""
    compiled = fxstack.compile(function, fullgraph=True)
    for arguments in calls:
        close(compiled(*arguments), function(*arguments))


def normalized(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    scaled = functional.layer_norm(x, x.shape[-1:], weight) * 2
    return functional.softmax(scaled, -1) + functional.gelu(scaled)


@pytest.mark.parametrize("dtype", FLOATS)
def test_pointwise_and_rows(dtype: torch.dtype) -> None:
    same(
        normalized,
        *(
            (torch.randn(n, 100, device="cuda", dtype=dtype), torch.randn(100, device="cuda", dtype=dtype))
            for n in (1, 7, 513)
        ),
    )


@pytest.mark.parametrize("columns", [3, 1024, 5000, 70000, 1 << 20])
def test_rows_of_any_length(columns: int) -> None:
    def both(x: torch.Tensor) -> torch.Tensor:
        return functional.log_softmax(x * 2, -1) + x.sum(0) / 10 + x.amax(1, keepdim=True)

    same(both, (torch.randn(33, columns, device="cuda"),))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.uint8, torch.bool])
def test_integers(dtype: torch.dtype) -> None:
    def mixed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.where(x > y, x, y).sum(1) + (x == y).any(1) * (x.to(torch.int32) - 3).amax(1)

    x, y = (
        torch.randint(0, 2 if dtype == torch.bool else 100, (64, 33), device="cuda").to(dtype) for _ in "xy"
    )
    same(mixed, (x, y))


def test_inputs_that_begin_anywhere() -> None:
    memory = torch.randn(1 + 64 * 128, device="cuda")

    def function(x: torch.Tensor) -> torch.Tensor:
        return (x * 3).relu() + x.sum(1, keepdim=True)

    same(function, (memory[:-1].view(64, 128),), (memory[1:].view(64, 128),), (memory[:-1].view(64, 128),))


def test_sizes_that_change() -> None:
    weight = torch.randn(64, 64, device="cuda")

    def function(x: torch.Tensor) -> torch.Tensor:
        return functional.softmax((x @ weight).relu().T, -1) * x.shape[0]

    same(function, *((torch.randn(n, 64, device="cuda"),) for n in (8, 16, 17, 100, 1000, 5000, 1)))


def test_floats_that_change() -> None:
    compiled = fxstack.compile(lambda x, rate: x * rate + rate**2, fullgraph=True)
    x = torch.randn(100, device="cuda", dtype=torch.float64)
    for rate in (0.1, 0.2, 1 / 3):
        close(compiled(x, rate), x * rate + rate**2)


def test_writes_to_inputs() -> None:
    def step(x: torch.Tensor, average: torch.Tensor) -> torch.Tensor:
        average.mul_(0.9).add_(x.mean(0))
        x.copy_(functional.softmax(x, -1))
        return x + average

    for columns in (64, 6000, 10000):
        x, average = torch.randn(16, columns, device="cuda"), torch.zeros(columns, device="cuda")
        other, other_average = x.clone(), average.clone()
        compiled = fxstack.compile(step, fullgraph=True)
        for _ in range(3):
            close(compiled(x, average), step(other, other_average))
            close(x, other)
            close(average, other_average)


def test_gathers_and_embeddings() -> None:
    table = torch.randn(50, 24, device="cuda", requires_grad=True)
    reference = table.detach().clone().requires_grad_()
    index = torch.randint(0, 50, (9, 5), device="cuda")

    def function(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        rows = functional.embedding(index, table)
        return rows * table[index.flip(0)].tanh()

    compiled = fxstack.compile(function, fullgraph=True)
    compiled(table, index).square().sum().backward()
    function(reference, index).square().sum().backward()
    assert table.grad is not None
    assert reference.grad is not None
    close(table.grad, reference.grad)


class Small(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.dropout = nn.Dropout(dropout)
        self.linear = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.max_pool2d(functional.relu(self.norm(self.convolution(x))), 2)
        result: torch.Tensor = self.linear(self.dropout(x).mean((2, 3)))
        return result


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_convolutions_and_batch_norm(layout: torch.memory_format) -> None:
    model, x = Small().cuda().to(memory_format=layout), torch.randn(8, 3, 32, 32, device="cuda")
    reference = Small().cuda().to(memory_format=layout)
    reference.load_state_dict(model.state_dict())
    compiled = fxstack.compile(model, fullgraph=True)
    for _ in range(2):
        compiled(x.to(memory_format=layout)).square().sum().backward()
        reference(x.to(memory_format=layout)).square().sum().backward()
    for ours, theirs in zip(model.parameters(), reference.parameters(), strict=True):
        assert ours.grad is not None
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-3)
    for ours, theirs in zip(model.buffers(), reference.buffers(), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_dropout_draws_as_often_as_it_should() -> None:
    model, x = Small(0.5).cuda(), torch.randn(64, 3, 16, 16, device="cuda")
    compiled = fxstack.compile(model, fullgraph=True)
    torch.manual_seed(1)
    first = compiled(x)
    torch.manual_seed(1)
    assert torch.equal(compiled(x), first)
    assert not torch.equal(compiled(x), first)
    ones = fxstack.compile(lambda t: functional.dropout(t, 0.25), fullgraph=True)(
        torch.ones(10000, device="cuda")
    )
    assert abs(float((ones == 0).float().mean()) - 0.25) < 0.03
    assert set(ones.unique().tolist()) <= {0.0, float(torch.ones(1).div(0.75))}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_autocast(dtype: torch.dtype) -> None:
    model, x = Small().cuda(), torch.randn(8, 3, 32, 32, device="cuda")
    reference = Small().cuda()
    reference.load_state_dict(model.state_dict())
    compiled = fxstack.compile(model, fullgraph=True)
    results = []
    for one in (compiled, reference):
        with torch.autocast("cuda", dtype):
            results.append(one(x))
        results[-1].float().square().sum().backward()
    assert results[0].dtype == results[1].dtype == dtype
    torch.testing.assert_close(*results, rtol=2e-2, atol=2e-2)
    for ours, theirs in zip(model.parameters(), reference.parameters(), strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        assert float((ours.grad - theirs.grad).norm() / (theirs.grad.norm() + 1e-3)) < 5e-2


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention(dtype: torch.dtype) -> None:
    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(q * 2, k, v, is_causal=True)

    drawn = [torch.randn(2, 4, 64, 32, device="cuda", dtype=dtype) for _ in "qkv"]
    ours, theirs = ([x.clone().requires_grad_() for x in drawn] for _ in range(2))
    one, other = fxstack.compile(attend, fullgraph=True)(*ours), attend(*theirs)
    close(one, other)
    one.float().square().sum().backward()
    other.float().square().sum().backward()
    for x, y in zip(ours, theirs, strict=True):
        assert x.grad is not None
        assert y.grad is not None
        tolerance = 10 * TOLERANCE[dtype]
        torch.testing.assert_close(x.grad, y.grad, rtol=tolerance, atol=tolerance)


def test_tensors_of_both_devices() -> None:
    same(lambda x, s: (x * 2 + s).relu(), (torch.randn(8, device="cuda"), torch.tensor(1.5)))


def test_streams_and_threads() -> None:
    compiled = fxstack.compile(lambda x: (x @ x).tanh().sum(0), fullgraph=True)
    x = torch.randn(256, 256, device="cuda")
    expected = (x @ x).tanh().sum(0)
    close(compiled(x), expected)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        result = compiled(x)
    stream.synchronize()
    close(result, expected)
    found: list[torch.Tensor] = []
    threads = [threading.Thread(target=lambda: found.append(compiled(x))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    assert len(found) == 4
    for one in found:
        close(one, expected)


def test_captured_into_a_cuda_graph() -> None:
    compiled = fxstack.compile(lambda x: (x @ x).tanh() + x.sum(0), fullgraph=True)
    x = torch.randn(64, 64, device="cuda")
    compiled(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = compiled(x)
    x.copy_(torch.randn(64, 64, device="cuda"))
    graph.replay()
    close(result, (x @ x).tanh() + x.sum(0))


def test_what_the_forward_kept_is_freed_while_the_backward_runs() -> None:
    def chain(x: torch.Tensor) -> torch.Tensor:
        for _ in range(8):
            x = torch.sin(x).cumsum(0)
        return x

    x = torch.randn(1 << 10, 1 << 10, device="cuda", requires_grad=True)
    peaks = []
    for function in (chain, fxstack.compile(chain, fullgraph=True)):
        for _ in range(2):
            x.grad = None
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            function(x).sum().backward()
        peaks.append(torch.cuda.max_memory_allocated())
    assert peaks[1] <= peaks[0] * 1.02


@pytest.mark.parametrize("shape", [(1 << 21,), (40000, 65), (65, 40000), (3, 1000, 1000)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int64])
def test_long_reductions_are_the_same_every_time(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.randint(-9, 10, shape, device="cuda").to(dtype)

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = (x + 1) * 2
        return (
            y.amax(0),
            y.argmin(0),
            y.sum(0, dtype=torch.float64),
            y.argmax(),
            y.sum(dtype=torch.float64),
            y,
        )

    compiled = fxstack.compile(function, fullgraph=True)
    for _ in range(2):
        for ours, theirs in zip(compiled(x), function(x), strict=True):
            assert torch.equal(ours, theirs)


def test_long_reductions_of_sizes_that_change() -> None:
    same(
        lambda x: (x.double() * 2).sum(0),
        *((torch.randn(n, 33, device="cuda"),) for n in (5, 100000, 70000, 3)),
    )


@pytest.mark.parametrize("shape", [(64, 64), (100, 3000), (5, 17, 129), (2, 3, 64, 65)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool])
def test_transposed_inputs(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    x = torch.randint(0, 2, shape, device="cuda").to(dtype)
    y = torch.randint(0, 2, (*shape[:-2], shape[-1], shape[-2]), device="cuda").to(dtype)
    same(lambda x, y: (x == y.mT) | (x.mT.contiguous().mT > y.mT), (x, y))
    same(lambda x, y: (x.mT.contiguous().to(torch.float32) + y).mT, (x, y))


def test_the_first_call_draws_what_later_ones_draw() -> None:
    """Learning what a program returns moves no generator, and draws from no weights that sum to nothing."""

    def draws(x: torch.Tensor) -> Any:
        weights = x.softmax(-1)
        order = torch.randperm(x.shape[0], device="cuda")
        kept = torch.randint(0, 3, (x.shape[0],), device=x.device)
        return torch.multinomial(weights, 5, replacement=True) + 10 * order[:5] + 100 * kept[:5], weights

    compiled = fxstack.compile(draws, fullgraph=True)
    for size in (8, 8, 11, 13):
        x = torch.randn(size, device="cuda")
        torch.manual_seed(size)
        expected = draws(x), torch.rand(1, device="cuda")
        torch.manual_seed(size)
        found = compiled(x), torch.rand(1, device="cuda")
        torch.testing.assert_close(found, expected)


def test_cuda_means_the_current_device() -> None:
    def made(x: torch.Tensor) -> torch.Tensor:
        y = torch.arange(x.shape[0], device="cuda") + torch.ones(x.shape[0], device=torch.device("cuda"))
        return y * x if y.device == x.device else y

    same(made, (torch.randn(5, device="cuda"),), (torch.randn(7, device="cuda"),))
