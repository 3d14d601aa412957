"""Copies to another dtype or memory format."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fx_interface.tensor_spec import TensorSpec, spec_of
from primtorch_decomps import decompose
from primtorch_decomps.testing import aten_graph, check_operator

X = torch.randn(2, 3, 4, 5)
LAYOUTS = [
    X,
    X.permute(2, 0, 1, 3),
    X[:, ::2],
    X[:, :1].expand(2, 3, 4, 5),
    X.to(memory_format=torch.channels_last),
]


@pytest.mark.parametrize("layout", range(len(LAYOUTS)))
def test_clone_and_convert(layout: int) -> None:
    x = LAYOUTS[layout]
    check_operator("aten.clone.default", x)
    check_operator("aten.clone.default", x, memory_format=torch.contiguous_format)
    check_operator("aten.clone.default", x, memory_format=torch.channels_last)
    check_operator("aten._to_copy.default", x, dtype=torch.float64)
    check_operator("aten._to_copy.default", x, dtype=torch.bfloat16, memory_format=torch.contiguous_format)
    check_operator("aten._to_copy.default", x)
    check_operator("aten.copy.default", x, torch.randn(5).bfloat16())


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float16, torch.uint8], ids=str)
def test_values(dtype: torch.dtype) -> None:
    check_operator("aten._to_copy.default", torch.tensor([0.0, 0.4, 1.6, 3.0]), dtype=dtype)
    check_operator("aten._to_copy.default", torch.tensor([True, False]), dtype=dtype)


@pytest.mark.parametrize("number", [torch.tensor(2), torch.tensor(2.5)])
def test_a_number_of_the_cpu_is_moved_alone(number: torch.Tensor) -> None:
    """What a program assigns to a part of a GPU's tensor is no tensor of that size on the CPU."""

    def on_gpu(tensor: torch.Tensor) -> TensorSpec:
        spec = spec_of(tensor)
        return replace(spec, device=torch.device("cuda", 0)) if tensor.dim() else spec

    module, _ = aten_graph(torch.ops.aten.copy.default, (torch.ones(3, 4), number), {}, on_gpu)
    targets = [node.target for node in decompose(module).graph.nodes if node.op == "call_function"]
    assert torch.ops.aten._to_copy.default in targets
    assert torch.ops.aten.copy.default not in targets
    module, _ = aten_graph(torch.ops.aten.copy.default, (number, torch.ones(())), {}, on_gpu)
    assert all(node.target is not torch.ops.aten._to_copy.default for node in decompose(module).graph.nodes)
