"""Depthwise convolutions in Triton's interpreter: as near to float64 as the library's, fused with what follows."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.triton.kernel import kernel_source
from inductor_codegen.codegen.triton.launch.kernels import KernelRecord
from inductor_codegen.ir.gpu.blocks import point_loops
from inductor_codegen.ir.kernel import extent_product
from inductor_codegen.ir.program import CallExtern, Program
from inductor_codegen.ir.verify import verify_kernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import GpuGraph, Stepper, on_device

aten = torch.ops.aten
CPU = torch.device("cpu")
Interpret = Callable[..., Callable[..., Any]]

CASES = {
    "3x3": (2, 16, 8, 8, 3, 3, (1, 1), (1, 1), (1, 1)),
    "stride": (2, 16, 8, 8, 3, 3, (2, 2), (1, 1), (1, 1)),
    "odd-stride": (2, 16, 7, 9, 3, 3, (2, 2), (1, 1), (1, 1)),
    "5x5": (1, 24, 14, 14, 5, 5, (1, 1), (2, 2), (1, 1)),
    "5x5-stride": (1, 12, 14, 12, 5, 5, (2, 2), (2, 2), (1, 1)),
    "7x7": (1, 16, 7, 14, 7, 7, (1, 1), (3, 3), (1, 1)),
    "oblong": (2, 8, 9, 11, 3, 2, (2, 1), (2, 0), (2, 3)),
    "line": (1, 8, 6, 6, 1, 3, (1, 1), (0, 1), (1, 1)),
    "padded": (1, 8, 3, 3, 3, 3, (1, 1), (4, 4), (1, 1)),
    "stride-of-3": (1, 8, 9, 9, 3, 3, (3, 3), (0, 0), (1, 1)),
    "wide": (1, 8, 2, 136, 3, 3, (1, 1), (1, 1), (1, 1)),
    "one-row": (1, 8, 1, 8, 5, 5, (1, 1), (2, 2), (1, 1)),
}


class Case:
    """A convolution, tanh of it, and its gradients, planned for a GPU."""

    def __init__(self, name: str, dtype: torch.dtype, *, bias: bool = True) -> None:
        images, channels, height, width, rows, columns, step, pad, gap = CASES[name]
        self.how = (list(step), list(pad), list(gap), False, [0, 0], channels)
        torch.manual_seed(0)
        x = torch.randn(images, channels, height, width, dtype=dtype).to(memory_format=torch.channels_last)
        weight = torch.randn(channels, 1, rows, columns, dtype=dtype)
        added = torch.randn(channels, dtype=dtype) if bias else None
        graph = self.graph = GpuGraph()
        given = [graph.input(x, "x"), graph.input(weight, "w"), graph.input(added, "b") if bias else None]
        result = graph.call(aten.convolution.default, *given, *self.how)
        slope = torch.randn_like(graph.values[result]).to(memory_format=torch.channels_last)
        mask = [True, True, bias]
        sizes = [channels] if bias else None
        gradients = graph.call(
            aten.convolution_backward.default, graph.input(slope, "g"), *given[:2], sizes, *self.how, mask
        )
        listed = [graph.call(operator.getitem, gradients, place) for place in range(2 + bias)]
        self.outputs = [graph.call(p.tanh, result), *listed]
        self.inputs = (x, weight, added, slope)
        self.program = plan(graph.build(*self.outputs))

    def exact(self) -> list[Tensor]:
        """The results in float64."""
        x, weight, bias, slope = (None if t is None else t.double().requires_grad_() for t in self.inputs)
        result = aten.convolution.default(x, weight, bias, *self.how)
        wanted = [one for one in (x, weight, bias) if one is not None]
        return [result.tanh(), *torch.autograd.grad(result, wanted, slope)]

    def check(self, results: list[Tensor]) -> None:
        """Results are as near to float64 as eager's, or a rounding away from it."""
        for node, found, exact in zip(self.outputs, results, self.exact(), strict=True):
            eager = self.graph.values[node]
            scale = float(exact.detach().abs().max())
            errors = [float((one.double() - exact.detach()).abs().max()) / scale for one in (eager, found)]
            cut_off = eager.dtype is torch.bfloat16  # by the interpreter, which does not round to it
            least = torch.finfo(torch.bfloat16).eps if cut_off else 4 * torch.finfo(torch.float32).eps
            assert errors[1] <= max(1.5 * errors[0], least)
            assert found.dtype is eager.dtype
            assert found.stride() == eager.stride()


def calls(program: Program) -> list[CallExtern]:
    return [step for step in program.steps if isinstance(step, CallExtern)]


@pytest.mark.parametrize("name", CASES)
def test_the_loop_ir(name: str) -> None:
    case = Case(name, torch.float32)
    assert not calls(case.program)
    for kernel in case.program.kernels:
        verify_kernel(kernel)
    case.check(Stepper(on_device(case.program, CPU), interpreted=True)(*case.graph.examples))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("3x3", torch.float32),
        ("3x3", torch.bfloat16),
        ("stride", torch.float16),
        ("odd-stride", torch.float32),
        ("5x5", torch.bfloat16),
        ("oblong", torch.float32),
        ("padded", torch.float16),
        ("wide", torch.float32),
    ],
)
def test_in_tritons_interpreter(name: str, dtype: torch.dtype, interpret: Interpret) -> None:
    case = Case(name, dtype, bias=name != "stride")
    case.check(list(interpret(on_device(case.program, CPU))(*case.graph.examples)))


def test_what_follows_is_fused() -> None:
    """A normalization and an activation, which a sum reads as well."""
    graph = GpuGraph()
    x = graph.input(torch.randn(2, 16, 8, 8).to(memory_format=torch.channels_last))
    weight, scale = graph.input(torch.randn(16, 1, 3, 3), "w"), graph.input(torch.randn(16), "s")
    how = ([1, 1], [1, 1], [1, 1], False, [0, 0], 16)
    result = graph.call(aten.convolution.default, x, weight, None, *how)
    scaled = graph.call(p.mul, result, graph.call(p.broadcast_in_dim, scale, [2, 16, 8, 8], [1]))
    made = graph.call(p.maximum, scaled, 0.0)
    program = plan(graph.build(made, graph.call(p.sum, made, [2, 3])))
    (kernel,) = [kernel for kernel in program.kernels if kernel.windows]
    assert [parameter.name for parameter in kernel.buffers] == ["in0", "in1", "in2", "out0"]
    assert len(program.kernels) == 2
    results = Stepper(on_device(program, CPU), interpreted=True)(*graph.examples)
    torch.testing.assert_close(results[0], graph.values[made])


def test_what_is_read_is_computed_once() -> None:
    """The activation before a convolution is not computed again at each tap, however cheap it is."""
    graph = GpuGraph()
    x = graph.input(torch.randn(2, 16, 8, 8).to(memory_format=torch.channels_last))
    weight, how = graph.input(torch.randn(16, 1, 3, 3), "w"), ([1, 1], [1, 1], [1, 1], False, [0, 0], 16)
    inside = graph.call(p.maximum, x, 0.0)
    program = plan(graph.build(graph.call(aten.convolution.default, inside, weight, None, *how)))
    (kernel,) = [kernel for kernel in program.kernels if kernel.windows]
    assert "tl.maximum" not in kernel_source(kernel)
    assert len(program.kernels) == 2


@pytest.mark.parametrize(("name", "loads"), [("3x3", 30), ("7x7", 13)])
def test_neighbouring_points_share_what_they_load(name: str, loads: int) -> None:
    """Eight points of three taps a row load 10 elements of each of three rows; seven of seven 13 of the row at hand."""
    program = Case(name, torch.float32, bias=False).program
    kernel = next(kernel for kernel in program.kernels if kernel.windows)
    text = kernel_source(kernel)
    assert text.count("tl.load(in0") in (loads, loads - 6)  # without the taps that are outside everywhere
    assert ("for i" in text) == (name == "7x7")


@pytest.mark.parametrize(("name", "points", "held"), [("wide", 17, 16), ("3x3", 1, 1)])
def test_sums_of_taps_hold_few_points(name: str, points: int, held: int) -> None:
    """Four of each channel a thread, so that several programs are on a multiprocessor; for more, a loop, once."""
    program = Case(name, torch.float32, bias=False).program
    (kernel,) = [kernel for kernel in program.kernels if kernel.taps]
    assert extent_product(point_loops(kernel)) == points
    launch = KernelRecord.of(kernel).launch(12, (points - 1).bit_length())
    assert (launch.points, launch.warps) == (held, 4)
    assert kernel_source(kernel).count("for roffset") == (points > held)
