"""Collectives inside compiled functions, run in two processes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import Tensor

import fxstack
from dynamo_capture.foundation import errors as fxstack_errors
from integration_tests.distributed.comparing import Counting, compared, differences

warnings.simplefilter("ignore")
PROGRAMS: dict[str, Callable[[int], Mapping[str, Any]]] = {}


def program(function: Callable[[int], Mapping[str, Any]]) -> Callable[[int], Mapping[str, Any]]:
    """Declare a program."""
    PROGRAMS[function.__name__] = function
    return function


def rows(count: int = 4) -> Callable[[int], Sequence[Tensor]]:
    """One tensor that differs by rank and call."""

    def make(call: int) -> Sequence[Tensor]:
        return (torch.arange(count * 3.0).reshape(count, 3) + 10 * dist.get_rank() + call,)

    return make


def world() -> Any:
    """The default group."""
    return dist.group.WORLD


_GATHERS_ANY_LAYOUT = not torch.__version__.startswith(("2.11.", "2.12."))
"""Those versions refuse tensors that are not row-major."""


@program
def functional_collectives(rank: int) -> Mapping[str, Any]:
    def function(x: Tensor) -> tuple[Tensor, ...]:
        y = x * 2
        total = functional.all_reduce(y, "sum", world())
        gathered = functional.all_gather_tensor(y, 0, world())
        beside = functional.all_gather_tensor(y, 1, world())
        part = functional.reduce_scatter_tensor(y, "sum", 0, world())
        first = functional.broadcast(y, 0, world())
        swapped = functional.all_to_all_single(y, None, None, world())
        many = functional.all_reduce_coalesced([x, y], "max", world())
        return (
            total + 1,
            gathered.sin(),
            beside + 1,
            part * 2,
            first + 1,
            swapped + 1,
            many[0] + 1,
            many[1] + 1,
        )

    return compared(function, rows())


@program
def collectives_in_place(rank: int) -> Mapping[str, Any]:
    def function(x: Tensor) -> tuple[Tensor, ...]:
        total, largest, first = x * 2, x + 1, x - 1
        dist.all_reduce(total)
        dist.all_reduce(largest, op=dist.ReduceOp.MAX)
        dist.broadcast(first, 1)
        gathered = torch.empty(8, 3)
        dist.all_gather_into_tensor(gathered, x)
        part, swapped = torch.empty(2, 3), torch.empty(4, 3)
        dist.reduce_scatter_tensor(part, x)
        dist.all_to_all_single(swapped, x)
        listed = [torch.empty(4, 3) for _ in range(dist.get_world_size())]
        dist.all_gather(listed, x)
        dist.all_reduce(x)
        return total, largest, first, gathered, part, swapped, *listed, x + dist.get_rank()

    return compared(function, rows())


@program
def unequal_parts(rank: int) -> Mapping[str, Any]:
    def function(x: Tensor) -> Tensor:
        mine, sent = ([1, 2], [1, 3]) if dist.get_rank() == 0 else ([3, 1], [2, 1])
        received = torch.empty(sum(mine), 3)
        dist.all_to_all_single(received, x, mine, sent)
        return received + 1

    return compared(function, rows(4 if rank == 0 else 3))


@program
def asynchronous(rank: int) -> Mapping[str, Any]:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        work = dist.all_reduce(y, async_op=True)
        z = x.sin() @ x.T
        assert work is not None
        work.wait()
        return y, z

    return compared(function, rows())


@program
def waiting_after_a_break(rank: int) -> Mapping[str, Any]:
    def function(x: Tensor) -> Tensor:
        y, whole = x * 2, torch.empty(8, 3)
        work = dist.all_reduce(y, async_op=True)
        gathering = dist.all_gather_into_tensor(whole, x, async_op=True)
        fxstack.graph_break()
        assert work is not None
        assert gathering is not None
        work.wait()
        gathering.wait()
        return y.sum() + whole.sum()

    return compared(function, rows(), fullgraph=False)


@program
def gradients(rank: int) -> Mapping[str, Any]:
    def function(x: Tensor) -> Tensor:
        whole = functional.all_gather_tensor(x * 2, 0, world())
        part = functional.reduce_scatter_tensor(whole * x.sum(), "sum", 0, world())
        return (functional.all_reduce(part.square(), "sum", world()) * x).sum()

    counting = Counting()
    found = []
    for run in (function, fxstack.compile(function, backend=counting, fullgraph=True)):
        x = rows()(0)[0].requires_grad_()
        run(x).backward()
        found.append(x.grad)
    return {"wrong": differences(found[1], found[0], 1e-5), "graphs": len(counting.graphs)}


@program
def collectives_in_a_custom_function(rank: int) -> Mapping[str, Any]:
    """As tensor parallel layers are often written."""

    class Reduced(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            y = x.clone()
            dist.all_reduce(y)
            return y

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            return gradient

    def function(x: Tensor, weight: Tensor) -> Tensor:
        return Reduced.apply(x @ weight).square().sum()

    found = []
    counting = Counting()
    for run in (function, fxstack.compile(function, backend=counting, fullgraph=True)):
        weight = (torch.arange(6.0).reshape(3, 2) / 10).requires_grad_()
        result = run(rows()(0)[0], weight)
        result.backward()
        found.append((result.detach(), weight.grad))
    return {"wrong": differences(found[1], found[0], 1e-5), "graphs": len(counting.graphs)}


@program
def a_history_that_autograd_keeps(rank: int) -> Mapping[str, Any]:
    """Eager's collective is not seen by autograd: the gradient passes it by."""

    def function(x: Tensor) -> Tensor:
        y = x.exp()
        dist.all_reduce(y)
        return (y * x).sum()

    found = []
    for run in (function, fxstack.compile(function)):
        x = (rows()(0)[0] / 100).requires_grad_()
        run(x).backward()
        found.append(x.grad)
    return {"wrong": differences(found[1], found[0], 1e-6)}


@program
def a_failure_after_a_collective(rank: int) -> Mapping[str, Any]:
    """The collective is not repeated when the graph fails: the next one finds its partner."""

    def function(x: Tensor, index: Tensor) -> Tensor:
        y = x * 2
        dist.all_reduce(y)
        return y[index]

    compiled = fxstack.compile(function)
    wrong = []
    good, bad = torch.tensor([1]), torch.tensor([7])
    x = rows()(0)[0]
    compiled(x, good)
    try:
        compiled(x, bad if rank == 0 else good)
        raised = "nothing"
    except IndexError:
        raised = "IndexError"
    expected = ["IndexError", "nothing"][rank]
    if raised != expected:
        wrong.append(f"{raised} was raised, {expected} should be")
    wrong += differences(compiled(x, good), function(x, good))
    return {"wrong": wrong}


@program
def groups_of_some(rank: int) -> Mapping[str, Any]:
    alone = [dist.new_group([each]) for each in range(dist.get_world_size())]
    everybody = dist.new_group()

    def function(x: Tensor, group: Any) -> Tensor:
        y = x * dist.get_world_size(group)
        dist.all_reduce(y, group=group)
        return y + 1

    counting = Counting()
    compiled = fxstack.compile(function, backend=counting, fullgraph=True)
    wrong = []
    for group in (alone[rank], everybody, alone[rank], None):
        wrong += differences(compiled(rows()(0)[0], group), function(rows()(0)[0], group))
    x = rows()(0)[0]
    other = fxstack.compile(function)(x, alone[1 - rank])
    wrong += differences(other, function(x, alone[1 - rank]))
    return {"wrong": wrong, "graphs": len(counting.graphs)}


@program
def only_one_process_compiles(rank: int) -> Mapping[str, Any]:
    """Compiling speaks to nobody: the other process runs in eager, or has compiled long before."""

    def function(x: Tensor) -> Tensor:
        a = functional.all_reduce(x * 2, "sum", world())
        b = functional.all_gather_tensor(x + 1, 0, world())
        return (a @ b.T).sum(0)

    x = rows()(0)[0]
    expected = function(x)
    compiled = fxstack.compile(function, fullgraph=True)
    wrong = differences((compiled if rank == 0 else function)(x), expected)
    wrong += differences((compiled if rank == 1 else function)(x), expected)
    return {"wrong": wrong}


@program
def layouts(rank: int) -> Mapping[str, Any]:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.T[:2] * 1
        whole = functional.all_gather_tensor(x.T if _GATHERS_ANY_LAYOUT else x.T.contiguous(), 0, world())
        dist.all_reduce(y)
        return y, whole + functional.all_reduce(x.T, "sum", world()).repeat(2, 1)

    return compared(function, rows())


@program
def other_sizes(rank: int) -> Mapping[str, Any]:
    def function(x: Tensor) -> Tensor:
        y = functional.all_gather_tensor(x * 2, 0, world())
        return y + functional.all_reduce(x.sum(), "sum", world())

    counting = Counting()
    compiled = fxstack.compile(function, backend=counting, fullgraph=True)
    wrong = []
    for count in (4, 6, 10):
        wrong += differences(compiled(*rows(count)(0)), function(*rows(count)(0)))
    return {"wrong": wrong, "versions": len(counting.graphs)}


@program
def what_ends_the_graph(rank: int) -> Mapping[str, Any]:
    """Reported under ``fullgraph``, else done in Python as it is."""

    def barrier(x: Tensor) -> Tensor:
        y = x + 1
        dist.barrier()
        return y * 2

    def recorded(x: Tensor) -> Tensor:
        y = x.exp().requires_grad_()
        dist.all_reduce(y)
        return y.detach() * 2

    def exchanged(x: Tensor) -> Tensor:
        received = torch.empty_like(x)
        other = 1 - dist.get_rank()
        operations = [dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, received, other)]
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        return received + 1

    def gathered_objects(x: Tensor) -> Tensor:
        found: list[Any] = [None, None]
        dist.all_gather_object(found, {"rank": dist.get_rank()})
        return x + found[1]["rank"]

    wrong = []
    for function in (barrier, recorded, exchanged, gathered_objects):
        wrong += compared(function, rows(), fullgraph=False)["wrong"]
    for function in (barrier, recorded):
        try:
            fxstack.compile(function, fullgraph=True)(rows()(0)[0])
            wrong.append(f"{function.__name__} is one graph")
        except fxstack_errors.CaptureError as error:
            wrong += [] if error.code == "CAP256" else [str(error)]
    return {"wrong": wrong}


@program
def a_group_that_is_gone(rank: int) -> Mapping[str, Any]:
    def function(x: Tensor, name: str) -> Tensor:
        return functional.all_reduce(x, "sum", name) + 1

    group = dist.new_group()
    name = group.group_name
    compiled = fxstack.compile(function, fullgraph=True)
    wrong = differences(compiled(rows()(0)[0], name), function(rows()(0)[0], name))
    dist.destroy_process_group(group)
    for run in (function, compiled):
        try:
            run(rows()(0)[0], name)
            wrong.append("no error is raised")
        except RuntimeError:
            pass
    return {"wrong": wrong}


@program
def a_result_that_was_not_waited_for(rank: int) -> Mapping[str, Any]:
    """A tensor that waits when it is read is passed in."""

    def function(x: Tensor) -> Tensor:
        return x * 2 + 1

    pending = functional.all_reduce(rows()(0)[0], "sum", world())
    expected = function(functional.all_reduce(rows()(0)[0], "sum", world()))
    return {"wrong": differences(fxstack.compile(function)(pending), expected)}


@program
def arguments_that_wait(rank: int) -> Mapping[str, Any]:
    """They are waited for where they are read, and what shows one goes on waiting."""

    def function(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        y = w.sin() @ w
        return y + x, x.view(-1), (w * x).sum()

    def make(call: int) -> Sequence[Tensor]:
        return functional.all_reduce(rows(3)(call)[0], "sum", world()), torch.ones(3, 3).requires_grad_()

    found = compared(function, make)
    compiled = fxstack.compile(function)
    pairs = []
    for run in (function, compiled):
        x, w = make(2)
        sum_, shown, total = run(x, w)
        total.backward()
        pairs.append((w.grad, type(shown).__name__, x.completed, type(sum_).__name__))  # type: ignore[attr-defined]
    wrong = differences(pairs[1][0], pairs[0][0], 1e-5)
    wrong += [] if pairs[0][1:] == pairs[1][1:] else [f"{pairs[1][1:]} for {pairs[0][1:]}"]
    return {"wrong": [*found["wrong"], *wrong], "graphs": found["graphs"]}
