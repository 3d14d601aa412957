"""What an operator refuses for the sizes of a later call is refused there, whether its result is used or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import fxstack


def _zeros(*sizes: int) -> torch.Tensor:
    return torch.zeros(sizes, dtype=torch.int64)


X = torch.ones(6, 5)
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]] = {
    "fewer slices than indices": (lambda x, i, s: x.index_add(0, i, s), (X, _zeros(3), X[:3]), (X, _zeros(4), X[:3])),
    "longer slices": (lambda x, i, s: x.index_add(0, i, s), (X, _zeros(3), X[:3]), (X, _zeros(3), torch.ones(3, 7))),
    "index_copy": (lambda x, i, s: x.index_copy(0, i, s), (X, _zeros(3), X[:3]), (X, _zeros(2), X[:3])),
    "index_reduce": (
        lambda x, i, s: x.index_reduce(0, i, s, "amax"), (X, _zeros(3), X[:3]), (X, _zeros(4), X[:3]),
    ),
    "scatter_add": (lambda x, i, s: x.scatter_add(0, i, s), (X, _zeros(3, 5), X[:3]), (X, _zeros(4, 5), X[:3])),
    "scatter": (lambda x, i, s: x.scatter(0, i, s), (X, _zeros(3, 4), X), (X, _zeros(3, 6), torch.ones(6, 7))),
    "scatter of a number": (lambda x, i: x.scatter(0, i, 2.0), (X, _zeros(3, 4)), (X, _zeros(3, 6))),
    "scatter_reduce": (
        lambda x, i, s: x.scatter_reduce(0, i, s, "amax"), (X, _zeros(3, 5), X[:3]), (X, _zeros(4, 5), X[:3]),
    ),
    "gather": (lambda x, i: x.gather(0, i), (X, _zeros(9, 4)), (X, _zeros(9, 6))),
    "a gradient of softmax": (
        lambda x, y: torch.ops.aten._softmax_backward_data(x, y, 0, x.dtype), (X, X), (X, torch.ones(7, 5)),
    ),
    "a bias of a convolution": (
        lambda x, w, b: torch.conv1d(x, w, b),
        (torch.ones(1, 3, 4), torch.ones(5, 3, 3), torch.ones(5)),
        (torch.ones(1, 3, 4), torch.ones(5, 3, 3), torch.ones(6)),
    ),
    "groups of a convolution": (
        lambda x, w: torch.conv1d(x, w, None, groups=2),
        (torch.ones(1, 4, 8), torch.ones(2, 2, 3)),
        (torch.ones(1, 4, 8), torch.ones(3, 2, 3)),
    ),
    "parameters of group norm": (
        lambda x, w: torch.native_group_norm(x, w, None, 1, 6, 3, 2, 1e-5)[0],
        (torch.ones(1, 6, 3), torch.ones(6)),
        (torch.ones(1, 6, 3), torch.ones(7)),
    ),
    "weights of classes": (
        lambda x, t, w: torch.nn.functional.nll_loss(x, t, w),
        (torch.ones(2, 4), _zeros(2), torch.ones(4)),
        (torch.ones(2, 4), _zeros(2), torch.ones(3)),
    ),
    "diagonal_scatter": (lambda x, s: x.diagonal_scatter(s), (X, torch.ones(5)), (X, torch.ones(4))),
}  # fmt: skip


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("used", [True, False], ids=["used", "unused"])
@pytest.mark.parametrize(("function", "first", "later"), CASES.values(), ids=CASES.keys())
def test_a_later_call_is_refused_as_by_eager(
    function: Callable[..., Any], first: tuple[Any, ...], later: tuple[Any, ...], used: bool, backend: str
) -> None:
    def program(*given: Any) -> Any:
        result = function(*given)
        return result if used else given[0] + 1

    compiled = fxstack.compile(program, backend=backend, dynamic=True)
    torch.testing.assert_close(compiled(*first), program(*first))
    with pytest.raises((RuntimeError, IndexError)) as eager:
        program(*later)
    with pytest.raises(eager.type) as ours:
        compiled(*later)
    assert str(ours.value) == str(eager.value)


@pytest.mark.parametrize("name", ["gather", "scatter_add"])
def test_an_index_without_elements_may_have_any_sizes(name: str) -> None:
    def program(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return x.gather(0, i) if name == "gather" else x.scatter_add(0, i, x)

    compiled = fxstack.compile(program, dynamic=True)
    for index in (_zeros(3, 5), _zeros(0, 9), _zeros(2, 4)):
        torch.testing.assert_close(compiled(X, index), program(X, index))
