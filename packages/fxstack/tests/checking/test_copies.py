"""Copies of inputs look like the inputs, and nothing done to them reaches these."""

from __future__ import annotations

import torch
from torch import Tensor

from fxstack.checking.copies import Copies


def test_memory_is_shared_as_it_was() -> None:
    base = torch.arange(12.0)
    inputs = (base[2:8], base[4:10].view(2, 3).t(), torch.arange(3.0))
    one, two, three = Copies(inputs).values
    assert one.untyped_storage()._cdata == two.untyped_storage()._cdata != three.untyped_storage()._cdata
    assert one.untyped_storage()._cdata != base.untyped_storage()._cdata
    for copied, original in zip((one, two, three), inputs, strict=True):
        assert torch.equal(copied, original)
        assert copied.stride() == original.stride()
        assert copied.storage_offset() == original.storage_offset()
        assert copied._is_view() == original._is_view()
    one[2] = -1
    assert two[0, 0] == -1
    assert torch.equal(base, torch.arange(12.0))


def test_one_tensor_twice_is_one_copy() -> None:
    x = torch.ones(2, requires_grad=True)
    copies = Copies((x, x))
    assert copies.values[0] is copies.values[1]
    assert len(copies.leaves) == 1


def test_histories_are_as_they_were() -> None:
    leaf = torch.ones(3, 2, requires_grad=True)
    inputs = (
        leaf,
        leaf * 2,
        (leaf * 2).t(),
        torch.nn.Parameter(torch.ones(2)),
        torch.ones(2),
        torch.ones(4).view(2, 2).requires_grad_(),
    )
    copies = Copies(inputs)
    for copied, original in zip(copies.values, inputs, strict=True):
        facts = [(t.requires_grad, t.is_leaf, t._is_view(), type(t), t.stride()) for t in (copied, original)]
        assert facts[0] == facts[1]
    assert sorted(copies.leaves) == [0, 1, 2, 3, 5]
    copies.values[2].sum().backward()
    assert torch.equal(_gradient(copies.leaves[2]), torch.ones(3, 2))
    assert leaf.grad is None


def test_conjugation_and_inference_stay() -> None:
    conjugated = torch.randn(3, dtype=torch.complex64).conj()
    with torch.inference_mode():
        inferred = torch.ones(2)
    one, two = Copies((conjugated, inferred)).values
    assert one.is_conj()
    assert torch.equal(one, conjugated)
    assert two.is_inference()


def _gradient(leaf: Tensor) -> Tensor:
    assert leaf.grad is not None
    return leaf.grad


def test_a_nudge_changes_last_places_only_and_shared_memory_once() -> None:
    base = torch.full((6,), 2.0)
    copies = Copies((base[:4], base[2:], torch.arange(3)))
    copies.nudge(torch.Generator().manual_seed(0))
    one, two, whole = copies.values
    assert torch.equal(one[2:], two[:2])
    assert not torch.equal(one, base[:4])
    assert torch.allclose(one, base[:4], rtol=3e-7)
    assert torch.equal(whole, torch.arange(3))
    assert torch.equal(base, torch.full((6,), 2.0))
