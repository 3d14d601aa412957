"""Specs of convolutions and their gradients in every layout."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from fx_interface.symbols import Relation, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, spec_of
from primtorch_decomps import LIBRARY
from primtorch_decomps.testing import check_operator, check_spec

SHAPES = {
    "plain": ((2, 4, 8, 8), (6, 4, 3, 3), False, 1, 2, 1),
    "transposed": ((2, 4, 8, 8), (4, 6, 3, 3), True, 1, 2, 1),
    "depthwise": ((2, 4, 8, 8), (4, 1, 3, 3), False, 4, 1, 1),
    "patches": ((2, 3, 32, 32), (8, 3, 4, 4), False, 1, 4, 0),
    "pointlike": ((1, 4, 8, 8), (6, 4, 1, 1), False, 1, 1, 0),
    "one_pixel": ((2, 16, 1, 1), (6, 16, 1, 1), False, 1, 1, 0),
    "sequence": ((2, 4, 9), (6, 4, 3), False, 1, 1, 1),
    "grouped_sequence": ((2, 4, 9), (4, 1, 3), False, 4, 2, 1),
    "volume": ((2, 4, 5, 5, 5), (6, 4, 3, 3, 3), False, 1, 1, 1),
}


@pytest.mark.parametrize(
    ("name", "last_input", "last_weight"),
    [
        (name, *layouts)
        for name, (x_shape, *_) in SHAPES.items()
        for layouts in product([False, True], repeat=2)
        if len(x_shape) == 4 or not any(layouts)  # only images have another layout here
    ],
)
def test_specs(name: str, last_input: bool, last_weight: bool) -> None:
    x_shape, weight_shape, transposed, groups, stride, padding = SHAPES[name]
    x, weight = torch.randn(x_shape), torch.randn(weight_shape)
    if x.dim() == 4:
        x = x.to(memory_format=torch.channels_last) if last_input else x
        weight = weight.to(memory_format=torch.channels_last) if last_weight else weight
    count = x.dim() - 2
    options = ([stride] * count, [padding] * count, [1] * count, transposed, [0] * count, groups)
    check_operator("aten.convolution.default", x, weight, None, *options, library_call=True)
    result = torch.ops.aten.convolution.default(x, weight, None, *options)
    for grad in (torch.randn(result.shape), torch.randn_like(result)):
        args = (grad, x, weight, [result.shape[1]], *options)
        name = "aten.convolution_backward.default"
        check_operator(name, *args, [True, True, True], library_call=True)
        check_operator(name, *args, [False, True, False], library_call=True)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("channels", [1, 2])
def test_sequences_that_are_row_major_and_channels_last(channels: int, transposed: bool) -> None:
    """One channel, or one place, may have the strides of both: eager keeps them, and its result is channels last."""
    x = torch.randn(2, 5, 1).mT if channels == 1 else torch.randn(2, 1, channels).mT
    weight = torch.randn((channels, 4, 1) if transposed else (4, channels, 1))
    check_spec(torch.ops.aten.convolution.default, (x, weight, None, [1], [0], [1], transposed, [0], 1), {})


def test_groups_of_a_size_are_fixed() -> None:
    """Such as those of modules that share their code: the rule answers, for the number that it has seen."""
    env = ShapeEnv()
    groups = env.create_symbol(4, low=1)
    x, weight = spec_of(torch.randn(2, 4, 5, 5)), spec_of(torch.randn(8, 1, 3, 3))
    arguments = (x, weight, None, [1, 1], [0, 0], [1, 1], False, [0, 0], groups)
    found = LIBRARY.infer_by_rule(torch.ops.aten.convolution.default, arguments, {}, env)
    assert isinstance(found, TensorSpec)
    assert found.sizes == (2, 8, 3, 3)
    assert [guard.relation for guard in env.guards] == [Relation("==", groups, 4)]
