"""Distributed tensors and tensor parallel modules in compiled functions, run in two processes."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.experimental import implicit_replication
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    loss_parallel,
    parallelize_module,
)

import fxstack
from dynamo_capture.foundation import errors as fxstack_errors
from dynamo_capture.runtime.replayed_operations import Replayed
from integration_tests.distributed.comparing import Counting, differences
from integration_tests.distributed.parallel_models import SEQUENCE, TENSOR, Model

warnings.simplefilter("ignore")
PROGRAMS: dict[str, Callable[[int], Mapping[str, Any]]] = {}
Arguments = Callable[[], Sequence[Any]]


def program(function: Callable[[int], Mapping[str, Any]]) -> Callable[[int], Mapping[str, Any]]:
    """Declare a program."""
    PROGRAMS[function.__name__] = function
    return function


@functools.cache
def mesh() -> DeviceMesh:
    """All processes in a row."""
    return init_device_mesh("cpu", (2,))


def spread(sizes: Sequence[int], *placements: Placement, grad: bool = False) -> DTensor:
    """A distributed tensor that is the same in each run."""
    whole = torch.randn(*sizes, generator=torch.Generator().manual_seed(sum(sizes)))
    made = distribute_tensor(whole, mesh(), placements)
    return made.requires_grad_() if grad else made


def plain(*sizes: int, grad: bool = False) -> Tensor:
    """A tensor that is the same in each run and process."""
    made = torch.randn(*sizes, generator=torch.Generator().manual_seed(sum(sizes)))
    return made.requires_grad_() if grad else made


def unlike(found: Any, expected: Any) -> list[str]:
    """What differs between two tensors, distributed or not: class, form, how they are spread, content."""
    if not isinstance(expected, DTensor):
        if isinstance(found, DTensor):
            return ["a distributed tensor for a plain one"]
        return differences(found, expected, 1e-5)
    if type(found) is not DTensor:
        return [f"a {type(found).__name__} for a distributed tensor"]
    wrong = []
    for name in ("placements", "shape", "device_mesh", "dtype", "requires_grad"):
        one, other = getattr(found, name), getattr(expected, name)
        wrong += [] if one == other else [f"{name}: {one} for {other}"]
    return wrong + differences(found._local_tensor, expected._local_tensor, 1e-5)


def trained(
    function: Callable[..., Any], make: Arguments, *, fullgraph: bool = True, calls: int = 2
) -> Mapping[str, Any]:
    """Results, and gradients of the arguments, in eager and compiled."""
    counting = Counting()
    compiled = fxstack.compile(function, backend=counting, fullgraph=fullgraph)
    wrong: list[str] = []
    for _ in range(calls):
        given, again = make(), make()
        results = [function(*given), compiled(*again)]
        pairs = zip(*(r if isinstance(r, tuple) else (r,) for r in reversed(results)), strict=True)
        for found, expected in pairs:
            wrong += unlike(found, expected)
            if expected.requires_grad:
                for result in (expected, found):
                    local = result.to_local() if isinstance(result, DTensor) else result
                    local.square().sum().backward(retain_graph=isinstance(results[0], tuple))
        for a, b in zip(given, again, strict=True):
            wrong += unlike(b, a)
            if isinstance(a, Tensor) and a.requires_grad and a.is_leaf:
                wrong += unlike(b.grad, a.grad)
    return {"wrong": wrong, "graphs": len(counting.graphs)}


def parts(*tensors: DTensor | Tensor) -> list[Tensor]:
    """The plain tensors in some tensors."""
    return [t.to_local() if isinstance(t, DTensor) else t for t in tensors]


@program
def operators(rank: int) -> Mapping[str, Any]:
    def function(x: DTensor, w: DTensor, b: DTensor) -> DTensor:
        y = F.linear(x, w, b).relu() * 2 + 1
        return (y / y.abs().clamp(min=1)).view(4, 2, 4).transpose(0, 1).softmax(-1)

    return trained(
        function,
        lambda: (
            spread((4, 6), Replicate(), grad=True),
            spread((8, 6), Shard(0), grad=True),
            spread((8,), Shard(0), grad=True),
        ),
    )


@program
def redistributed(rank: int) -> Mapping[str, Any]:
    """By each kind of collective, and unevenly."""

    def function(a: DTensor, b: DTensor) -> tuple[DTensor, ...]:
        product = a @ b
        assert product.placements == (Partial(),)
        whole = product.redistribute(placements=[Replicate()])
        rows = product.redistribute(placements=[Shard(0)], async_op=True)
        columns = rows.redistribute(a.device_mesh, (Shard(1),))
        return whole, rows * 2, columns.redistribute(placements=[Replicate()])

    return trained(
        function, lambda: (spread((5, 6), Shard(1), grad=True), spread((6, 3), Shard(0), grad=True))
    )


@program
def in_and_out(rank: int) -> Mapping[str, Any]:
    """Between plain and distributed tensors, with gradients on both sides."""

    def function(x: Tensor, w: DTensor, partial: Tensor) -> tuple[Tensor, Tensor]:
        rows = DTensor.from_local(x.sin(), mesh(), [Shard(0)])
        summed = DTensor.from_local(partial, mesh(), [Partial()]).redistribute(placements=[Shard(0)])
        mine = (rows @ w).to_local(grad_placements=[Shard(0)])
        return (rows @ w).full_tensor().cos(), mine * summed.to_local().sum()

    return trained(
        function,
        lambda: (plain(4, 6, grad=True), spread((6, 8), Shard(1), grad=True), plain(4, 4, grad=True)),
    )


@program
def a_loss_in_parts(rank: int) -> Mapping[str, Any]:
    """The result is a sum of which each process has a part; its gradient is whole."""
    counting = Counting()

    def function(x: DTensor, w: DTensor) -> Any:
        return (x @ w).square().mean()

    wrong, gradients = [], []
    for run in (function, fxstack.compile(function, backend=counting, fullgraph=True)):
        w = spread((6, 8), Shard(1), grad=True)
        loss = run(spread((4, 6), Replicate()), w)
        with mock.patch.object(Replayed, "gradients", side_effect=AssertionError("the operations run again")):
            loss.backward()
        gradients.append(w.grad)
        wrong += [] if loss.placements[0].is_partial() else ["the loss is whole"]
    return {"wrong": wrong + unlike(gradients[1], gradients[0]), "graphs": len(counting.graphs)}


@program
def questions(rank: int) -> Mapping[str, Any]:
    """What a program asks of a distributed tensor decides what is captured, and is guarded."""

    def function(x: DTensor) -> DTensor:
        count = x.device_mesh.size()
        if x.placements[0].is_shard():
            count += 10 * (1 + x.placements[0].dim)
        return x * count + x.shape[0] * x.to_local().shape[0]

    counting = Counting()
    compiled = fxstack.compile(function, backend=counting, fullgraph=True)
    wrong = []
    for placement in (Shard(0), Shard(1), Replicate(), Shard(0)):
        wrong += unlike(compiled(spread((6, 8), placement)), function(spread((6, 8), placement)))
    return {"wrong": wrong, "graphs": len(counting.graphs)}


@program
def written_to(rank: int) -> Mapping[str, Any]:
    """An optimizer's step."""

    def step(p: DTensor, g: DTensor, m: DTensor) -> None:
        m.mul_(0.9).add_(g)
        torch._foreach_add_([p], [m], alpha=-0.1)

    counting = Counting()
    compiled = fxstack.compile(step, backend=counting, fullgraph=True)
    wrong = []
    given, again = ([spread((5, 6), Shard(0), grad=g) for g in (True, False, False)] for _ in range(2))
    with torch.no_grad():
        for _ in range(3):
            step(*given)
            compiled(*again)
    for a, b in zip(given, again, strict=True):
        wrong += unlike(b, a) + (
            [] if a._version == b._version else [f"version {b._version} for {a._version}"]
        )
    return {"wrong": wrong, "graphs": len(counting.graphs)}


@program
def gradients_of_another_kind(rank: int) -> Mapping[str, Any]:
    """A gradient that is spread otherwise than the graph was made for, and a second derivative: torch's own code."""

    def function(x: DTensor) -> DTensor:
        return (x * x).redistribute(placements=[Replicate()])

    compiled = fxstack.compile(function, fullgraph=True)
    found: list[Any] = []
    for run in (function, compiled):
        x = spread((4, 6), Shard(0), grad=True)
        run(x).backward(spread((4, 6), Shard(1)))
        (first,) = torch.autograd.grad(run(x).to_local().sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.to_local().square().sum(), x)
        found.append((x.grad, first.detach(), second))
    return {"wrong": [w for pair in zip(found[1], found[0], strict=True) for w in unlike(*pair)]}


def modules(blocks: int, block: Mapping[str, Any], whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """Training of a parallelized model."""
    counting = Counting()
    made: list[Any] = []
    for _ in range(2):
        torch.manual_seed(0)
        model = Model(blocks)
        plan = {f"blocks.{i}.{name}": style for i in range(blocks) for name, style in block.items()}
        parallelize_module(model, mesh(), {**plan, **whole})
        made.append(model)
    eager, model = made
    compiled = fxstack.compile(model, backend=counting, fullgraph=True)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in made]
    wrong = []
    tokens = torch.arange(8).reshape(2, 4)
    for step in range(2):
        for run, optimizer in zip((eager, compiled), optimizers, strict=True):
            optimizer.zero_grad()
            result = run(tokens + step)
            F.cross_entropy(result.flatten(0, 1), tokens.flatten()).backward()
            optimizer.step()
        for p, q in zip(eager.parameters(), model.parameters(), strict=True):
            wrong += unlike(q.grad, p.grad) + unlike(q.detach(), p.detach())
    return {"wrong": wrong, "graphs": len(counting.graphs)}


@program
def losses_in_parts(rank: int) -> Mapping[str, Any]:
    """Logits that lie apart by class, in and around the compiled function; outside of the block another version."""

    def inside(x: DTensor, t: DTensor) -> DTensor:
        with loss_parallel():
            return F.cross_entropy(x * 2, t)

    def target() -> DTensor:
        return distribute_tensor(torch.arange(6) % 4, mesh(), [Replicate()])

    counting = Counting()
    around = fxstack.compile(F.cross_entropy, backend=counting, fullgraph=True)
    wrong, again = [], fxstack.compile(inside)
    for block in (loss_parallel, loss_parallel, contextlib.nullcontext):
        found = []
        for run in (F.cross_entropy, around):
            x = spread((6, 4), Shard(1), grad=True)
            with block():
                loss = run(x, target())
                loss.backward()
            found.append((loss, x.grad))
        wrong += [w for pair in zip(found[1], found[0], strict=True) for w in unlike(*pair)]
        x = spread((6, 4), Shard(1))
        wrong += unlike(again(x, target()), inside(x, target()))
    return {"wrong": wrong, "graphs": len(counting.graphs)}


@program
def plain_tensors_taken_for_whole_ones(rank: int) -> Mapping[str, Any]:
    def function(x: DTensor, y: Tensor) -> Any:
        return x + y

    compiled = fxstack.compile(function)
    x, y = spread((4, 4), Shard(0)), plain(4, 4)
    with implicit_replication():
        wrong = unlike(compiled(x, y), function(x, y))
    try:
        compiled(x, y)
        wrong.append("no error is raised")
    except RuntimeError as error:
        wrong += [] if "mixed torch.Tensor and DTensor" in str(error) else [str(error)]
    return {"wrong": wrong}


@program
def parts_of_parameters(rank: int) -> Mapping[str, Any]:
    """They are parameters themselves."""

    def function(w: nn.Parameter) -> Tensor:
        part = w.to_local()  # type: ignore[operator]
        return part * (2 if isinstance(part, nn.Parameter) else 3)

    found = trained(function, lambda: (nn.Parameter(spread((4, 4), Shard(0))),))
    wrong = list(found["wrong"])
    with torch.no_grad():
        w = nn.Parameter(spread((4, 4), Shard(0)))
        part = fxstack.compile(lambda w: w.to_local(), fullgraph=True)(w)
        alike = type(part) is type(w.to_local())  # type: ignore[operator]  # before torch 2.13 no parameter
    wrong += [] if alike else [f"a part that is a {type(part).__name__}"]
    wrong += [] if part.data_ptr() == w._local_tensor.data_ptr() else ["a copy"]
    return {"wrong": wrong, "graphs": found["graphs"]}


@program
def tensor_parallel(rank: int) -> Mapping[str, Any]:
    whole = {
        "embedding": RowwiseParallel(input_layouts=Replicate()),
        "head": ColwiseParallel(output_layouts=Replicate()),
    }
    return modules(2, TENSOR, whole)


@program
def sequence_parallel(rank: int) -> Mapping[str, Any]:
    whole = {
        "embedding": RowwiseParallel(
            input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False
        ),
        "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
        "blocks.0": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Shard(1)),
    }
    return modules(1, SEQUENCE, whole)


@program
def what_ends_the_graph(rank: int) -> Mapping[str, Any]:
    """Reported under ``fullgraph``, else done in Python as it is."""

    def scattered(x: Tensor) -> Tensor:
        return distribute_tensor(x + 1, mesh(), [Shard(0)]).full_tensor()

    def drawn(x: Tensor) -> Tensor:
        return (F.dropout(DTensor.from_local(x, mesh(), [Replicate()]), 0.5) * 0).to_local()

    wrong = []
    for function in (scattered, drawn):
        wrong += unlike(fxstack.compile(function)(plain(4, 4)), function(plain(4, 4)))
        try:
            fxstack.compile(function, fullgraph=True)(plain(4, 4))
            wrong.append(f"{function.__name__} is one graph")
        except fxstack_errors.CaptureError:
            pass
    return {"wrong": wrong}


@program
def distributed_here(rank: int) -> Mapping[str, Any]:
    """Each process takes its own part of what it has."""

    def function(x: Tensor) -> DTensor:
        return distribute_tensor(x * 2, mesh(), [Shard(0)], src_data_rank=None) + 1

    return trained(function, lambda: (plain(5, 4),))
