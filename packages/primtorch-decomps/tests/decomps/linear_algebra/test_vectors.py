"""Distances, products of vectors, rows of a largest norm."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fx_interface.signature import SHAPE_ENV_KEY
from fx_interface.tensor_spec import SPEC_KEY, SymSpec
from primtorch_decomps import decompose
from primtorch_decomps.testing import aten_graph, check_operator


@pytest.mark.parametrize("p", [0, 1, 2, 3.5, float("inf")])
def test_distances(p: float) -> None:
    check_operator("aten.dist.default", torch.randn(3, 4), torch.randn(4), p)


@pytest.mark.parametrize("p", [1, 2])
def test_rows_are_cut_down(p: float) -> None:
    check_operator("aten.renorm.default", torch.randn(4, 3, 5), p, 1, 2.0)


def test_cross_products() -> None:
    check_operator("aten.linalg_cross.default", torch.randn(4, 3), torch.randn(1, 3))
    check_operator(
        "aten.linalg_cross.default", torch.randn(3, 4).bfloat16(), torch.randn(3, 4).bfloat16(), dim=0
    )


@pytest.mark.parametrize("beta, alpha", [(1, 1), (0, 2), (0.5, -1.5)])
def test_outer_products(beta: float, alpha: float) -> None:
    column, row = torch.randn(3), torch.randn(4)
    for x in (torch.randn(3, 4), torch.randn(4), torch.full((3, 4), float("nan"))):
        check_operator("aten.addr.default", x, column, row, beta=beta, alpha=alpha)


VARYING = [
    (torch.ops.aten.renorm.default, (torch.ones(3, 4), 2, 0, 3), 3),
    (torch.ops.aten.renorm.default, (torch.ones(3, 4), 2, 0, 3), 1),
    (torch.ops.aten.dist.default, (torch.ones(3), torch.zeros(3), 3), 2),
    (torch.ops.aten.linalg_vector_norm.default, (torch.ones(3, 4), 3, [1]), 1),
    (torch.ops.aten.elu.default, (-torch.ones(3), 2, 0.5), 1),
    (torch.ops.aten.elu_backward.default, (torch.ones(3), 2, 0.5, 1, False, -torch.ones(3)), 1),
    (torch.ops.aten.lerp.Scalar, (torch.ones(3), torch.zeros(3), 2), 2),
    (torch.ops.aten.linspace.default, (2, 0.5, 3), 0),
    (torch.ops.aten.arange.start_step, (0.5, 4, 0.5), 1),
    (torch.ops.aten.multi_margin_loss.default, (torch.rand(3, 4), torch.tensor([0, 3, 1]), 1, 2), 3),
]


@pytest.mark.parametrize("op, args, place", VARYING, ids=str)
def test_numbers_that_vary_are_left_to_the_library_where_a_formula_depends_on_them(
    op: Any, args: tuple[Any, ...], place: int
) -> None:
    module, inputs = aten_graph(op, args, {})
    (call,) = (node for node in module.graph.nodes if node.op == "call_function")
    env = module.meta[SHAPE_ENV_KEY]
    with module.graph.inserting_before(next(iter(module.graph.nodes))):
        number = module.graph.placeholder("n")
    number.meta[SPEC_KEY] = SymSpec(env.create_symbol(args[place]))
    call.args = (*call.args[:place], number, *call.args[place + 1 :])
    (found,) = decompose(module)(args[place], *inputs)
    torch.testing.assert_close(found, op(*args))
