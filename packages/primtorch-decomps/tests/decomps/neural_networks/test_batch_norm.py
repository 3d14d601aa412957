"""Batch normalisation, training and inference, forward and backward."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator

ATEN = torch.ops.aten
INPUTS = {
    "image": torch.randn(3, 4, 5, 6) * 2 + 1,
    "channels_last": torch.randn(3, 4, 5, 6).to(memory_format=torch.channels_last),
    "sequence": torch.randn(3, 4, 5),
    "matrix": torch.randn(7, 4),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("name", INPUTS)
def test_functional(name: str, affine: bool, training: bool) -> None:
    x = INPUTS[name]
    weight, bias = (torch.randn(4) if affine else None for _ in range(2))
    args = (x, weight, bias, torch.randn(4), torch.rand(4) + 0.5, training, 0.1, 1e-5)
    check_operator("aten._native_batch_norm_legit_functional.default", *args)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=str)
def test_other_dtypes(dtype: torch.dtype) -> None:
    x = INPUTS["image"].to(dtype)
    for kind in {torch.float32 if dtype is torch.bfloat16 else dtype, dtype}:
        parameters = [
            torch.randn(4).to(kind),
            torch.randn(4).to(kind),
            torch.randn(4).to(kind),
            torch.rand(4).to(kind),
        ]
        args = (x, *parameters, False, 0.1, 1e-5)
        check_operator("aten._native_batch_norm_legit_functional.default", *args)


def test_without_running_statistics() -> None:
    x, weight = INPUTS["image"], torch.randn(4)
    check_operator("aten._native_batch_norm_legit.no_stats", x, weight, None, True, 0.1, 1e-5)
    check_operator("aten.native_batch_norm.default", x, weight, None, None, None, True, 0.1, 1e-5)
    running = (torch.randn(4), torch.rand(4) + 0.5)
    check_operator("aten.native_batch_norm.default", x, weight, None, *running, False, 0.1, 1e-5)
    check_operator("aten._native_batch_norm_legit_no_training.default", x, weight, None, *running, 0.1, 1e-5)


def test_a_call_that_changes_its_inputs_stays_a_library_call() -> None:
    from primtorch_decomps import decompose
    from primtorch_decomps.testing import aten_graph

    args = (INPUTS["image"], None, None, torch.zeros(4), torch.ones(4), True, 0.1, 1e-5)
    module, _ = aten_graph(ATEN.native_batch_norm.default, args, {})
    targets = [node.target for node in decompose(module).graph.nodes]
    assert ATEN.native_batch_norm.default in targets


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", INPUTS)
def test_backward(name: str, training: bool) -> None:
    if name == "channels_last" and torch.get_default_device().type != "cpu":
        pytest.skip("the layout depends on the kernel that is chosen")
    x, weight = INPUTS[name].double(), torch.randn(4).double()
    running = (torch.randn(4).double(), torch.rand(4).double() + 0.5)
    results = ATEN._native_batch_norm_legit_functional.default(x, weight, None, *running, training, 0.1, 1e-5)
    grad = torch.randn_like(x)
    args = (grad, x, weight, *running, results[1], results[2], training, 1e-5)
    check_operator("aten.native_batch_norm_backward.default", *args, [True, True, True], slack=16)
    if torch.get_default_device().type == "cpu":  # other kernels compute what is not asked for, too
        check_operator("aten.native_batch_norm_backward.default", *args, [True, False, False], slack=16)
