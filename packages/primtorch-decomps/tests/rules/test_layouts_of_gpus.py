"""Where kernels of a GPU lay out their results otherwise than those of a CPU; found by ``tools/shape_rules.py --device
cuda --layouts``."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps import LIBRARY, decompose
from primtorch_decomps.testing import aten_graph

ATEN = torch.ops.aten
GPU = torch.device("cuda", 0)


def on_gpu(*sizes: int, strides: tuple[int, ...] | None = None, dtype: Any = torch.float32) -> TensorSpec:
    return TensorSpec(sizes, strides or contiguous_strides(sizes), dtype, GPU)


def strides_of(op: Any, *args: Any, **kwargs: Any) -> Any:
    found = LIBRARY.infer(op, args, kwargs, ShapeEnv())
    return (
        found.strides if isinstance(found, TensorSpec) else [None if s is None else s.strides for s in found]
    )


def test_different_slices_are_row_major() -> None:
    rows = on_gpu(2, 3, dtype=torch.int64)
    assert strides_of(ATEN.unique_dim.default, rows, 1)[0][1] == 1
    assert strides_of(ATEN.unique_dim.default, on_gpu(2, 3, 4), 1)[0][1:] == (4, 1)


@pytest.mark.parametrize(
    ("sizes", "strides"), [((2, 4), (1, 2)), ((5, 4, 3), (1, 5, 20)), ((2, 4, 3, 3), (36, 1, 12, 4))]
)
def test_batch_norm_keeps_the_layout(sizes: tuple[int, ...], strides: tuple[int, ...]) -> None:
    x, row = on_gpu(*sizes, strides=strides), on_gpu(4)
    for op in (ATEN.native_batch_norm.default, ATEN._native_batch_norm_legit_functional.default):
        assert strides_of(op, x, row, row, row, row, True, 0.1, 1e-5)[0] == strides


@pytest.mark.parametrize(
    ("sizes", "strides", "found"),
    [((4, 3, 4), (1, 4, 12), (12, 4, 1)), ((2, 4, 3, 3), (36, 1, 12, 4), (36, 1, 12, 4))],
)
def test_gradients_of_dropout_have_a_memory_format(sizes: Any, strides: Any, found: Any) -> None:
    x, mask = on_gpu(*sizes, strides=strides), on_gpu(*sizes, strides=strides, dtype=torch.bool)
    assert strides_of(ATEN.native_dropout_backward.default, x, mask, 2.0) == found


@pytest.mark.parametrize(("stride", "extra", "last"), [(2, 1, True), (1, 1, False)])
def test_transposed_convolutions_that_cudnn_leaves_are_row_major(stride: int, extra: int, last: bool) -> None:
    x, weight = on_gpu(2, 4, 5, 5, strides=(100, 1, 20, 4)), on_gpu(4, 4, 3, 3)
    geometry = ([stride] * 2, [0, 0], [2, 2], True, [extra] * 2, 1)
    result = LIBRARY.infer(ATEN.convolution.default, (x, weight, None, *geometry), {}, ShapeEnv())
    assert (result.strides[1] == 1) is last
    grads = LIBRARY.infer(
        ATEN.convolution_backward.default, (result, x, weight, [4], *geometry, [True] * 3), {}, ShapeEnv()
    )
    assert (grads[0].strides[1] == 1) is last


@pytest.mark.parametrize(
    ("op", "args", "is_kept"),
    [
        (ATEN.embedding.default, (torch.ones(5, 3), torch.ones(2, dtype=torch.int64)), True),
        (ATEN.index_select.default, (torch.ones(5, 3), 0, torch.ones(2, dtype=torch.int64)), True),
        (ATEN.gather.default, (torch.ones(5, 3), 0, torch.ones(2, 3, dtype=torch.int64)), True),
        (ATEN.index.Tensor, (torch.ones(5, 3), [torch.ones(2, dtype=torch.int64)]), False),
    ],
    ids=str,
)
def test_kernels_refuse_operands_on_two_devices(op: Any, args: Any, is_kept: bool) -> None:
    """Computed as a formula, what eager raises would be lost. Indices of an index may lie on the CPU."""

    def apart(tensor: torch.Tensor) -> TensorSpec:
        device = GPU if tensor.dtype is torch.float32 else torch.device("cpu")
        return TensorSpec(tuple(tensor.shape), tensor.stride(), tensor.dtype, device)

    module, _ = aten_graph(op, args, {}, apart)
    assert any(node.target is op for node in decompose(module).graph.nodes) is is_kept


@pytest.mark.parametrize(
    ("parameters", "expected"), [(torch.bfloat16, torch.bfloat16), (torch.float32, torch.float32)]
)
def test_statistics_of_group_norm_have_the_dtype_of_parameters(
    parameters: torch.dtype, expected: torch.dtype
) -> None:
    """As on a CPU; its gradient's kernel refuses others. Layer norm's are of float32 on a GPU."""
    x, weight = on_gpu(2, 6, 3, dtype=torch.bfloat16), on_gpu(6, dtype=parameters)
    group = LIBRARY.infer(
        ATEN.native_group_norm.default, (x, weight, weight, 2, 6, 3, 2, 1e-5), {}, ShapeEnv()
    )
    layer = LIBRARY.infer(
        ATEN.native_layer_norm.default, (x, [3], *[on_gpu(3, dtype=parameters)] * 2, 1e-5), {}, ShapeEnv()
    )
    assert [spec.dtype for spec in group] == [torch.bfloat16, expected, expected]
    assert [spec.dtype for spec in layer] == [torch.bfloat16, torch.float32, torch.float32]
