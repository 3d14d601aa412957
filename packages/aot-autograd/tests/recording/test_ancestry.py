"""Regions of autograd's graph in which something is saved."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from aot_autograd.recording.ancestry import largest, saving_regions


def tensors() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(2, 2, requires_grad=True), torch.ones(2, 2, requires_grad=True)


def regions(*results: torch.Tensor, targets: Any) -> set[tuple[int, int]]:
    return set(saving_regions(dict(enumerate(results)), dict(enumerate(targets))))


def test_a_region_leads_from_results_to_inputs() -> None:
    x, y = tensors()
    assert regions(x.sin(), y.sin(), targets=(x, y)) == {(0b01, 0b01), (0b10, 0b10)}
    shared = x.sin()
    assert regions(shared + y, shared + 1, targets=(x, y)) == {(0b11, 0b01)}


def test_what_is_part_of_another_region_is_left_out() -> None:
    x, y = tensors()
    assert regions((x.sin() * y).sum(), targets=(x, y)) == {(0b1, 0b11)}
    assert largest([(1, 1), (3, 1), (1, 3), (1, 1)]) == ((3, 1), (1, 3))


def test_results_that_others_are_computed_from_are_targets() -> None:
    x, _ = tensors()
    earlier = x.sin()
    assert regions(earlier.exp(), earlier, targets=(x, earlier)) == {(0b01, 0b11), (0b11, 0b01)}
    assert regions(earlier + 1, earlier, targets=(x, earlier)) == {(0b11, 0b01)}


class Keeping(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
        ctx.tensor = tensor.detach()
        return tensor * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * ctx.tensor


def of_a_list(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = torch._foreach_mul([x], [y])[0]
    return found


SAVES = {
    "cumulative sum": (lambda x, y: x.cumsum(0), False),
    "bias of a product": (lambda x, y: torch.addmm(x, y.detach(), y.detach()), False),
    "product for its bias and a factor": (lambda x, y: torch.addmm(x, x, y.detach()), True),
    "number": (lambda x, y: x * 2, True),
    "indices": (lambda x, y: x[[1, 0]], True),
    "attribute of a context": (lambda x, y: Keeping.apply(x), False),
    "list of tensors": (of_a_list, True),
}


@pytest.mark.parametrize(("run", "saves"), SAVES.values(), ids=SAVES)
def test_whether_a_node_saves_is_what_it_refuses(run: Any, saves: bool) -> None:
    x, y = tensors()
    result = run(x, y)
    assert bool(regions(result, targets=(x, y))) == saves
    result.sum().backward()
    if saves:
        with pytest.raises(RuntimeError, match="second time"):
            result.sum().backward()
    else:
        result.sum().backward()
