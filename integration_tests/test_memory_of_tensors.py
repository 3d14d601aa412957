"""Programs about the memory of tensors, found by ``adversaries/tensors.py``: each does what it does in eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import fxstack
from fx_interface.conformance.outcomes import differences, observe

BACKENDS = ("eager", "aot_eager", "inductor")
Arguments = Callable[[], tuple[Any, ...]]
CASES: dict[str, tuple[Callable[..., Any], tuple[Arguments, ...]]] = {}


def case(*calls: Arguments) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A program and the arguments of its calls."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES[function.__name__] = (function, calls)
        return function

    return register


def row(count: int) -> torch.Tensor:
    return torch.arange(1.0, count + 1)


@case(lambda: (row(3),), lambda: (row(5),))
def out_grows(x: Any) -> Any:
    o = torch.empty(0)
    torch.mul(x, 2, out=o)
    return o + 1 if o.numel() > 0 else o - 1


@case(lambda: (row(3), row(7)), lambda: (row(5), row(2)), lambda: (row(2), torch.empty(0)))
def out_is_an_argument(x: Any, o: Any) -> Any:
    torch.mul(x, 2, out=o)
    return o + 1 if o.numel() > 2 else o - 1, o.shape


@case(lambda: (torch.ones(3, 4),), lambda: (torch.ones(2, 4),))
def out_is_a_pair(x: Any) -> Any:
    a, b = torch.empty(0), torch.empty(0, dtype=torch.long)
    torch.max(x, 1, out=(a, b))
    return a, b, a.shape, b.numel()


@case(lambda: (5,), lambda: (6,), lambda: (7,))
def out_of_a_factory(n: int) -> Any:
    o = torch.empty(0)
    torch.arange(n, out=o)
    return o, o.numel()


@case(lambda: (torch.tensor([1, 2]),))
def out_of_a_dtype_that_the_kernel_refuses(x: Any) -> Any:
    torch.clamp(x, 0, 1, out=torch.empty(2))
    return x


@case(lambda: (row(5),), lambda: (row(5),))
def a_view_of_what_grows(x: Any) -> Any:
    o = torch.empty(0)
    v = o.detach()
    torch.neg(x, out=o)
    return o, v.shape


class Holder(torch.nn.Module):
    """Has a buffer without elements."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("held", torch.empty(0))


@case(lambda: (row(3), Holder()), lambda: (row(4), Holder()))
def out_is_a_buffer(x: Any, module: Any) -> Any:
    torch.mul(x, 2, out=module.held)
    return module.held.numel(), module.held + 1


def _index(*places: int) -> Arguments:
    return lambda: (torch.tensor(places),)


@case(_index(0, 1), _index(0, 5), _index(-3, 2), _index(-4, 0))
def index_of_ones(i: Any) -> Any:
    return torch.ones(3, 2)[i]


@case(_index(0, 5))
def index_of_what_nobody_reads(i: Any) -> Any:
    return torch.ones(3, 2)[:, i].shape


@case(_index(0, 5))
def rows_of_an_expanded_tensor(i: Any) -> Any:
    return i.sum().float().expand(3, 2).index_select(0, i)


@case(_index(0, 5))
def embedding_of_zeros(i: Any) -> Any:
    return torch.nn.functional.embedding(i, torch.zeros(3, 2))


@case(_index(0, 5))
def gather_of_ones(i: Any) -> Any:
    return torch.ones(3).gather(0, i)


@case(_index(0, 9))
def take_of_ones(i: Any) -> Any:
    return torch.ones(3, 2).take(i)


@case(
    lambda: (row(4), torch.tensor([0, 1])),
    lambda: (row(0), torch.tensor([0, 1])),
    lambda: (row(1), torch.tensor([-4, 0])),
)
def index_of_an_empty_tensor(x: Any, i: Any) -> Any:
    return x.index_select(0, i) * 2


@case(lambda: (row(3), torch.tensor([0])), lambda: (-row(3), torch.tensor([0])))
def index_of_what_data_leave_empty(x: Any, i: Any) -> Any:
    return x[x > 0][i]


@case(lambda: (row(8),), lambda: (row(8)[::2],))
def read_between_after_a_write(a: Any) -> Any:
    v = a.as_strided((4,), (1,))
    a.add_(100)
    return v * 1


@case(lambda: (row(8),))
def written_between(base: Any) -> Any:
    v = base[::2].as_strided((4,), (1,))
    v.add_(100)
    return base * 1, v


@case(lambda: (row(8)[:4],), lambda: (row(4),))
def a_strided_view_beyond_the_memory(x: Any) -> Any:
    x.as_strided((8,), (1,))
    return x * 2


@case(lambda: (row(8)[:4],), lambda: (row(4),))
def a_strided_view_that_is_read_beyond(x: Any) -> Any:
    return x.as_strided((8,), (1,)) * 2


@case(lambda: (row(8),), lambda: (row(9),))
def windows_of_a_result(a: Any) -> Any:
    return a.neg().unfold(0, 3, 2)


@case(*(lambda n=n: (row(n * n).view(n, n).t(),) for n in (2, 4, 5)))
def windows_of_columns_of_any_length(x: Any) -> Any:
    return torch.cat([x, x]).clone().unfold(0, 2, 1)


@case(lambda: (torch.ones(1, 4).expand(3, 4),))
def a_view_that_strides_forbid(x: Any) -> Any:
    x.view(-1)
    return x * 2


@case(lambda: (torch.ones(2, 3),), lambda: (torch.ones(3, 1),))
def a_write_over_a_part_of_what_is_read(x: Any) -> Any:
    x[1:] = x[:-1]
    return x


@case(lambda: (row(4),))
def a_sort_into_what_is_sorted(x: Any) -> Any:
    torch.gather(x, 0, torch.zeros(4, dtype=torch.long), out=x)
    return x


@case(lambda: (torch.tensor([[3.0], [0.0], [2.0]]),))
def whether_a_part_is_a_view(y: Any) -> Any:
    part = y[:-1]
    return part.masked_fill_(part > 0, 5) if part._is_view() else part


@case(*(lambda n=n: (torch.ones(n, 4), torch.ones(1)) for n in (3, 2, 5)))
def a_result_with_more_elements_than_its_place(x: Any, y: Any) -> Any:
    y.neg_()
    y.lerp_(x, 0.5)


@case(lambda: (torch.ones(3), torch.ones(1, dtype=torch.long)))
def a_result_of_another_form_and_dtype(x: Any, y: Any) -> Any:
    y.add_(x)


@case(lambda: ((x := torch.ones(2, 3).requires_grad_()), x[:1]))
def a_write_that_autograd_does_not_follow_before_one_that_it_refuses(x: Any, y: Any) -> Any:
    y.logical_not_()
    y.mul_(y)


@case(lambda: (torch.ones(3, 4),), lambda: (torch.ones(5, 2),))
def a_view_that_was_written_to_lies_in_its_base(x: Any) -> Any:
    part = (x * 1)[1:]
    part.add_(1)
    return part, part.storage_offset()


@case(lambda: (torch.tensor([True]),))
def a_kernel_that_is_missing(x: Any) -> Any:
    x.logical_not_()
    x.floor_()


@case(lambda: (torch.tensor([2, 1, 1, 0]), torch.zeros(4, dtype=torch.long)))
def two_results_to_one_place(x: Any, y: Any) -> Any:
    torch.sort(x, -1, out=(y, y))


@case(lambda: ((x := torch.ones(3).requires_grad_()), x[1:]))
def a_view_of_a_leaf_is_copied_to_itself(x: Any, y: Any) -> Any:
    y.copy_(y)


@case(lambda: (torch.ones(2, 2).bool(),))
def a_missing_kernel_in_place_only(x: Any) -> Any:
    x.logical_not_()
    x.cumsum_(0)


@case(lambda: (torch.ones(4, 0).bool(),), lambda: (torch.ones(2, 2).bool(),))
def a_missing_kernel_that_empty_tensors_do_not_need(x: Any) -> Any:
    x.softmax(-1)


@case(
    lambda: (torch.ones(2, 3), torch.ones(2, 3)),
    lambda: (torch.ones(3, 1), torch.ones(3, 2)),
)
def a_copy_of_more_elements(x: Any, y: Any) -> Any:
    x.neg_()
    x.copy_(y)


@case(lambda: (torch.ones(3, 0),))
def out_without_elements_of_another_form(x: Any) -> Any:
    o = x * 1
    torch.arange(0, out=o)
    return o


@case(lambda: (torch.ones(3, 0),), lambda: (torch.ones(2, 0),))
def out_without_elements_that_keeps_its_form(x: Any) -> Any:
    o = x * 1
    torch.arange(x.numel(), out=o)
    return o.flatten() * 1, o


@case(lambda: (row(4).requires_grad_(),))
def gradients_end_where_a_strided_view_leaves_its_source(x: Any) -> Any:
    return (x.as_strided((2, 2), (1, 1)).as_strided((2, 2), (2, 1)) * 2,)


@case(lambda: (torch.ones(3, 4),), lambda: (torch.ones(2, 5),), lambda: (torch.ones(4, 6)[:, :3],))
def strides_that_followed_sizes_before(x: Any) -> Any:
    return x.stride(), x.is_contiguous(), x + 1


@case(lambda: (row(5), torch.tensor([], dtype=torch.long)))
def out_grows_and_is_shown(x: Any, i: Any) -> Any:
    o = x.index_select(0, i)
    shown = o.unsqueeze(0)
    torch.zeros(2, out=o)
    return shown, o


@case(lambda: (row(2),))
def out_grows_and_is_shown_without_history(x: Any) -> Any:
    o = torch.empty(0)
    shown = o.detach()
    torch.mul(x, 2, out=o)
    return shown, o


@case(lambda: (row(4), torch.tensor([0, 1])), lambda: (row(4), torch.tensor([1, 7])))
def index_of_what_is_asked_for_its_form(x: Any, i: Any) -> Any:
    return torch.full_like(x.take(i), 2)


@case(lambda: (row(4), torch.tensor([0, 1])), lambda: (row(4), torch.tensor([1, 7])))
def index_of_what_is_read_in_part(x: Any, i: Any) -> Any:
    return (x[i] * 2)[:1] + 1, torch.ones_like(x.index_add(0, i, x[:2]))


@case(*(lambda size=size: (torch.ones(size).mT,) for size in ((2, 4, 3), (2, 4, 5), (3, 6, 2))))
def layouts_of_windows_and_diagonals(x: Any) -> Any:
    return (x * 2).unfold(-1, 2, 2), (x * 3).unfold(1, 2, 3), (x + 1).diagonal(0, 1, 2)


@case(*(lambda size=size: (row(size + 3).unfold(0, 4, 1),) for size in (5, 8, 11)))
def a_window_is_written_to(x: Any) -> Any:
    x.mul_(2)
    return x + 1


@case(*(lambda size=size: (row(size),) for size in (8, 11, 14)))
def a_view_of_windows_is_written_to(x: Any) -> Any:
    windows = x.as_strided((x.shape[0] - 3, 4), (1, 1))
    windows[1:].add_(1)
    return windows.sum(1)


def leaf() -> torch.Tensor:
    return torch.ones(2, 3, requires_grad=True)


@case(lambda: (leaf()[:1],), lambda: (leaf() * 2,), lambda: (leaf(),), lambda: (leaf().detach()[:1],))
def a_view_of_an_input_takes_another_form(x: Any) -> Any:
    v = x.view(x.shape)
    v.t_()
    return v * 1


@case(lambda: (leaf() * 2,), lambda: (leaf()[:1],), lambda: (leaf(),))
def a_view_takes_another_form_and_is_given_back(x: Any) -> Any:
    v = x.broadcast_to(x.shape)
    v.unsqueeze_(0)
    return x, v


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", CASES)
def test_is_as_in_eager(name: str, backend: str, dynamic: bool | None) -> None:
    program, calls = CASES[name]
    fxstack.reset()
    compiled = fxstack.compile(program, backend=backend, dynamic=dynamic)
    for call in calls:
        expected, actual = (observe(function, *call(), lines_of=__file__) for function in (program, compiled))
        ignored = () if backend == "eager" else ("version",)
        assert not differences(expected, actual, ignore=("own version", *ignored))
