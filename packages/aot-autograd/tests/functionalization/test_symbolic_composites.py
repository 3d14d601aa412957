"""The formulas for older versions of torch compute what its own composite functions do, with the same operators."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from aot_autograd.functionalization.symbolic_composites import SymbolicComposites, attention, linear, matmul
from aot_autograd.joint.joint import trace_program
from aot_autograd.recording.graphs import live_values
from fx_interface.signature import InputDecl, InputKind
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides


class Products(TorchDispatchMode):
    """Notes the products of matrices that are asked for, with the sizes and strides of their operands."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[Any, ...]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ in ("dot", "mv", "mm", "bmm"):
            self.asked.append((str(func), *((tuple(a.shape), a.stride()) for a in args)))
        return func(*args, **(kwargs or {}))


def products_of(function: Any, *args: torch.Tensor) -> tuple[torch.Tensor, list[tuple[Any, ...]]]:
    with Products() as products:
        made = function(*args)
    return made, products.asked


@pytest.mark.parametrize("grads", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("turned", ["", "one", "two"])
@pytest.mark.parametrize(
    ("one", "two"),
    [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 4)),
        ((2, 3), (3, 4)),
        ((5, 2, 3), (3, 4)),
        ((5, 2, 3), (3,)),
        ((5, 0, 3), (3, 4)),
        ((6, 5, 2, 3), (3, 4)),
        ((3,), (5, 3, 4)),
        ((2, 3), (5, 3, 4)),
        ((2, 3), (6, 5, 3, 4)),
        ((5, 1, 2, 3), (6, 3, 4)),
        ((5, 2, 3), (5, 3, 4)),
    ],
)
def test_matmul(one: tuple[int, ...], two: tuple[int, ...], turned: str, grads: tuple[bool, bool]) -> None:
    a, b = (
        torch.randn(sizes[::-1] if turned == name else sizes, dtype=torch.float64)
        for name, sizes in (("one", one), ("two", two))
    )
    a = a.permute(*reversed(range(a.dim()))) if turned == "one" else a
    b = b.permute(*reversed(range(b.dim()))) if turned == "two" else b
    a, b = (t.detach().requires_grad_(grad) for t, grad in zip((a, b), grads, strict=True))
    (ours, asked), (torchs, expected) = products_of(matmul, a, b), products_of(torch.matmul, a, b)
    torch.testing.assert_close(ours, torchs, rtol=0, atol=0)
    assert ours.stride() == torchs.stride()
    assert asked == expected


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("sizes", [(3,), (2, 3), (4, 2, 3), (5, 4, 2, 3)])
def test_linear(sizes: tuple[int, ...], with_bias: bool) -> None:
    x, w = torch.randn(sizes), torch.randn(6, 3)
    bias = torch.randn(6) if with_bias else None
    torch.testing.assert_close(linear(x, w, bias), torch.nn.functional.linear(x, w, bias), rtol=0, atol=0)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True},
        {"scale": -0.3},
        {"dropout_p": 0.4},
        {"attn_mask": torch.arange(12).view(3, 4) % 5 > 1},
        {"attn_mask": torch.linspace(-1, 1, 12).view(3, 4)},
    ],
    ids=["plain", "causal", "scale", "dropout", "truths", "numbers"],
)
@pytest.mark.parametrize("batch", [(), (2,), (2, 3, 2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention(batch: tuple[int, ...], dtype: torch.dtype, options: dict[str, Any]) -> None:
    if "attn_mask" in options and options["attn_mask"].is_floating_point():
        options = {"attn_mask": options["attn_mask"].to(dtype)}
    query, key, value = (torch.randn(*batch, *s).to(dtype) for s in ((3, 8), (4, 8), (4, 5)))
    found = []
    for function in (attention, torch.nn.functional.scaled_dot_product_attention):
        torch.manual_seed(0)
        given = [t.clone().requires_grad_() for t in (query, key, value)]
        result = function(*given, **options)
        found.append((result, *torch.autograd.grad(result.sum(), given)))
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_attention_of_fused_kernels_and_errors_are_torchs() -> None:
    query = torch.randn(2, 2, 3, 8)
    assert attention(query, query, query) is NotImplemented
    assert attention(query[0], query[0].double(), query[0]) is NotImplemented
    mask = torch.zeros(3, 3)
    assert attention(query[0], query[0], query[0], mask, is_causal=True) is NotImplemented
    with torch.autocast("cpu"):
        assert attention(query[0], query[0], query[0]) is NotImplemented


def _heads(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    weight, bias = w[:4], b[:4]
    return torch.nn.functional.multi_head_attention_forward(
        *(x, x, x, 4, 2, weight.repeat(3, 1), bias.repeat(3), None, None, False, 0.0, weight, bias),
        need_weights=False,
    )[0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w, b: torch.nn.functional.linear(x, w, b),
        lambda x, w, b: torch.nn.functional.linear(x, w),
        lambda x, w, b: x @ w.t(),
        lambda x, w, b: x.matmul(x.transpose(1, 2)),
        lambda x, w, b: torch.linalg.matmul(input=x, other=w.t()),
        lambda x, w, b: x.transpose(1, 2).__rmatmul__(x),
        lambda x, w, b: torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True),
        _heads,
    ],
)
def test_the_same_operators_are_recorded(function: Any, library: Any) -> None:
    recorded = []
    for mode in (nullcontext(), SymbolicComposites()):
        env = ShapeEnv()
        sizes = [(env.create_symbol(17), env.create_symbol(23), 4), (5, 4), (5,)]
        inputs = [torch.zeros(17, 23, 4), torch.zeros(5, 4), torch.zeros(5)]
        specs = [TensorSpec(s, contiguous_strides(s), torch.float32, torch.device("cpu")) for s in sizes]
        declared = [InputDecl(n, InputKind.USER, spec) for n, spec in zip("xwb", specs, strict=True)]

        def program(recorder: Any, values: Any, mode: Any = mode) -> list[Any]:
            with mode:
                return [function(*values)]

        joint = trace_program(program, declared, inputs, library, env, training=False)
        assert not [guard for guard in env.guards if guard.fixes]
        live = live_values([joint.results.graph[0].value], {})
        recorded.append([(value.op, value.spec) for value in live if not value.is_input])
    assert recorded[0] == recorded[1]
