"""16-bit floats that are moved keep their bits, and a store rounds once."""

from __future__ import annotations

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.cpp.emit import emit_kernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper

HALVES = [torch.float16, torch.bfloat16]


def every_pattern(dtype: torch.dtype) -> torch.Tensor:
    return torch.arange(-(2**15), 2**15, dtype=torch.int16).view(dtype)


@pytest.mark.parametrize("dtype", HALVES)
def test_what_is_moved_keeps_its_bits(dtype: torch.dtype) -> None:
    graph = ExampleGraph()
    x = graph.input(every_pattern(dtype).reshape(256, 256))
    flipped = graph.call(p.flip, x, [1])
    joined = graph.call(p.cat, [flipped, x], 1)
    module = graph.build(joined)
    program = plan(module)
    assert not any("float" in line for k in program.kernels for line in emit_kernel(k).splitlines()[3:])
    (found,) = Stepper(program)(*graph.examples)
    (wanted,) = module(*graph.examples)
    assert torch.equal(found.view(torch.int16), wanted.view(torch.int16))


@pytest.mark.parametrize("dtype", HALVES)
def test_a_padding_number_is_written_as_bits(dtype: torch.dtype) -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(4, 100).to(dtype))
    module = graph.build(graph.call(p.pad, x, [0, 0], [0, 5], -1.5))
    (found,) = Stepper(plan(module))(*graph.examples)
    assert torch.equal(found, module(*graph.examples)[0])


@pytest.mark.parametrize("dtype", HALVES)
def test_a_store_rounds_once(dtype: torch.dtype) -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(70_000))
    module = graph.build(graph.call(p.convert_dtype, x, dtype))
    assert "rounded" not in emit_kernel(plan(module).kernels[0])
    (found,) = Stepper(plan(module))(*graph.examples)
    assert torch.equal(found, module(*graph.examples)[0])
