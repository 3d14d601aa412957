"""Every pointwise primitive and reduction, in every dtype that it takes, gives what its reference gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from fx_interface.dialects.prims import PRIMS, PrimKind, PrimOp
from inductor_codegen.codegen.triton.formulas import constant, literal, neutral
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph

NAN, INF = float("nan"), float("inf")
LEFT = [-2.5, -1.0, -0.3, 0.0, 0.2, 0.7, 1.5, 2.5, NAN, INF, -INF, 3.0, -7.0, 1e-3, 100.0, -0.5]
RIGHT = [2.0, -3.0, 0.5, 1.0, -1.5, 2.0, 0.25, 3.0, 1.0, 2.0, -1.0, NAN, 2.0, 3.0, 0.5, -0.5]
FLOATS = torch.tensor([LEFT]), torch.tensor([RIGHT])
INTEGERS = torch.tensor([-7, -3, -1, 0, 1, 5, 9, 100]), torch.tensor([2, -3, 4, 5, -2, 3, -4, 7])
SAMPLES: dict[torch.dtype, tuple[torch.Tensor, torch.Tensor]] = {
    torch.float32: FLOATS,
    torch.float64: (FLOATS[0].double(), FLOATS[1].double()),
    torch.float16: (FLOATS[0][:, :8].half(), FLOATS[1][:, :8].half()),
    torch.bfloat16: (FLOATS[0][:, :8].bfloat16(), FLOATS[1][:, :8].bfloat16()),
    torch.int64: INTEGERS,
    torch.int32: (INTEGERS[0].int(), INTEGERS[1].int()),
    torch.uint8: (INTEGERS[0].abs().byte(), INTEGERS[1].abs().byte()),
    torch.bool: (torch.tensor([True, False, True, False]), torch.tensor([True, True, False, False])),
}
TOLERANCE = {torch.float16: 2e-3, torch.bfloat16: 1.2e-2, torch.float64: 1e-7}


def calls(op: PrimOp) -> Iterator[tuple[torch.dtype, list[torch.Tensor], tuple[Any, ...]]]:
    """Tensor operands and other arguments that the primitive's reference takes."""
    for dtype, (x, y) in SAMPLES.items():
        if op.name == "where":
            yield dtype, [x if dtype is torch.bool else x > 0, x, y], ()
        elif op.name == "convert_dtype":
            yield dtype, [x], (torch.float32,)
            yield dtype, [x[..., 1:4]], (torch.int32,)
        elif op.kind is PrimKind.REDUCTION:
            yield dtype, [x], (x.dim() - 1,) if op.name.startswith("arg") else ([x.dim() - 1],)
        elif op.kind is PrimKind.POINTWISE:
            yield dtype, [x, y] if " y" in op.schema else [x], ()


def works(op: PrimOp, tensors: list[torch.Tensor], rest: tuple[Any, ...]) -> bool:
    """Whether the reference takes such operands at all."""
    try:
        op(*tensors, *rest)
    except (RuntimeError, TypeError, NotImplementedError):
        return False
    return True


NAMES = [name for name, op in PRIMS.items() if op.kind in (PrimKind.POINTWISE, PrimKind.REDUCTION)]


@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_the_reference(name: str, interpret: Callable[..., Callable[..., Any]]) -> None:
    op, ran = PRIMS[name], 0
    for dtype, tensors, rest in calls(op):
        if not works(op, tensors, rest):
            continue
        graph = ExampleGraph()
        nodes = [graph.input(tensor, f"x{i}") for i, tensor in enumerate(tensors)]
        program = plan(graph.build(graph.call(op, *nodes, *rest)))
        (result,) = interpret(program)(*tensors)
        tolerance = TOLERANCE.get(dtype, 1e-5)
        expected = op(*tensors, *rest)
        torch.testing.assert_close(result, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
        ran += 1
    assert ran


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_quotients_of_small_numbers_and_signs_of_zeros_are_kept(
    dtype: torch.dtype, interpret: Callable[..., Callable[..., Any]]
) -> None:
    left = torch.tensor([1e-40, 3e-40, -1e-40, -0.0, 0.0, 0.0, -0.0, 6.0, -7.0, 5.5, 1.0, 0.0], dtype=dtype)
    right = torch.tensor([1e-40, 1e-40, 1e-40, 2.0, -2.0, 2.0, -2.0, 3.0, 7.0, -0.5, 0.0, NAN], dtype=dtype)
    graph = ExampleGraph()
    x, y = graph.input(left, "x"), graph.input(right, "y")
    names = ("floor_div", "trunc_div", "remainder", "fmod")
    program = plan(graph.build(*[graph.call(PRIMS[name], x, y) for name in names]))
    expected = [torch.floor_divide(left, right), (left / right).trunc(), left % right, left.fmod(right)]
    for name, found, wanted in zip(names, interpret(program)(left, right), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=0, atol=0, equal_nan=True, msg=name)
        if name == "floor_div":
            assert torch.equal(found.signbit(), wanted.signbit())


def test_literals() -> None:
    assert literal(True, torch.bool) == "1"
    assert literal(INF, torch.float32) == "float('inf')"
    assert literal(0.1, torch.float32) == "0.1"
    assert literal(3, torch.int64) == "3"


def test_constants() -> None:
    """Small ones of bfloat16 are conversions."""
    assert constant(0.5, torch.bfloat16) == "tl.full([1, 1], 0.5, tl.bfloat16)"
    assert constant(0.0, torch.bfloat16) == "tl.full([1, 1], 0.0, tl.bfloat16)"
    assert constant(1e-12, torch.bfloat16) == "tl.full([1, 1], 1e-12, tl.float32).to(tl.bfloat16)"
    assert constant(1e-12, torch.float32) == "tl.full([1, 1], 1e-12, tl.float32)"


def test_neutral_elements() -> None:
    assert neutral("amax", torch.int32) == str(-(2**31))
    assert neutral("amin", torch.bool) == "1"
    assert neutral("sum", torch.float32) == "0"
