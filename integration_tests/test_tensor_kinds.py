"""Nested tensors, maps and scans, pairs of tensors, marked views through the whole stack: all is eager's."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.testing._internal.two_tensor import TwoTensor

import fxstack

WEIGHTS = torch.linspace(-0.2, 0.3, 30).reshape(6, 5)


def nested(lengths: tuple[int, ...]) -> Any:
    torch.manual_seed(0)
    parts = [torch.randn(length, 5, requires_grad=True) for length in lengths]
    return parts, torch.nested.as_nested_tensor(parts, layout=torch.jagged)


def block(x: Any) -> Any:
    q, k, v = (
        F.linear(x, w).unflatten(-1, (2, 3)).transpose(1, 2) for w in (WEIGHTS, WEIGHTS + 0.1, WEIGHTS * 2)
    )
    found = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)
    return F.layer_norm(F.gelu(found @ WEIGHTS) + x, (5,))


@pytest.mark.parametrize("dynamic", [None, True])
def test_a_block_of_a_transformer_on_nested_tensors(dynamic: bool | None) -> None:
    fast = fxstack.compile(block, fullgraph=True, dynamic=dynamic)
    for lengths in ((2, 3, 4), (5, 1, 6), (3, 7)):
        found = []
        for run in (block, fast):
            parts, x = nested(lengths)
            result = run(x)
            result.values().square().sum().backward()
            found.append([result.values(), result.offsets(), *(part.grad for part in parts)])
        torch.testing.assert_close(found[1], found[0], rtol=1e-4, atol=1e-5)


def test_maps_and_scans() -> None:
    from functorch.experimental.control_flow import map as mapped
    from torch._higher_order_ops.scan import scan

    def program(x: Any, w: Any) -> Any:
        rows = mapped(lambda row, w: (row * w).sin(), x, w)
        return rows, scan(lambda c, row: (c * w + row, c * 2), x[0], rows)

    def plain(x: Any, w: Any) -> Any:
        rows = (x * w).sin()
        carried, made = x[0], []
        for row in rows:
            made.append(carried * 2)
            carried = carried * w + row
        return rows, (carried, torch.stack(made))

    fast = fxstack.compile(program, fullgraph=True)
    for length in (3, 5, 4):
        found = []
        for run in (plain, fast):
            x, w = torch.linspace(0, 1, 2 * length).reshape(length, 2), torch.ones(2)
            x.requires_grad_()
            w.requires_grad_()
            rows, (carried, made) = run(x, w)
            (rows.sum() + carried.sum() + made.sum()).backward()
            found.append([rows, carried, made, x.grad, w.grad])
        torch.testing.assert_close(found[1], found[0])


def test_pairs_of_tensors() -> None:
    def program(pair: Any) -> Any:
        y = pair.clone()
        return y.view(y.shape[1], y.shape[0])[1:] * 2 + 1

    fast = fxstack.compile(program, fullgraph=True)
    for rows in (3, 4, 5):
        pair = TwoTensor(torch.arange(4.0 * rows).reshape(rows, 4), torch.ones(rows, 4))
        found, expected = fast(pair), program(pair)
        assert type(found) is TwoTensor
        torch.testing.assert_close([found.a, found.b], [expected.a, expected.b])
        assert found.storage_offset() == expected.storage_offset()


def _negated(x: torch.Tensor) -> Any:
    view = torch._neg_view(x)
    row = view[1:]
    row.add_(5)
    return view, row, view * 2, view @ view.t()


def _imaginary(x: torch.Tensor) -> Any:
    z = torch.complex(x, x + 1)
    conjugated = z.conj()
    conjugated.imag.mul_(3)
    return z, conjugated, conjugated.imag, conjugated.imag + x, conjugated.imag.sum(0), conjugated.abs()


def _without_views(x: torch.Tensor) -> Any:
    return (
        torch._neg_view(x.t()) + 1,
        torch._neg_view(torch._neg_view(x)) * 2,
        torch._neg_view(x.expand(2, 2, 3)).sum(),
    )


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("program", [_negated, _imaginary, _without_views])
def test_views_that_are_marked_as_negated(program: Any, backend: str) -> None:
    fast = fxstack.compile(program, backend=backend, fullgraph=True)
    outcomes = []
    for run in (program, fast):
        x = torch.arange(6.0).reshape(2, 3)
        outcomes.append((*run(x), x))
    for expected, found in zip(*outcomes, strict=True):
        if isinstance(expected, torch.Tensor):
            torch.testing.assert_close(found, expected)
            assert (found.stride(), found.is_neg()) == (expected.stride(), expected.is_neg())
        else:
            assert found == expected
