"""Collectives of ``torch.distributed`` that write to the tensors they are given, by functional ones.

    dist.all_reduce(x)    ->    x.copy_(wait_tensor(_c10d_functional.all_reduce(x, "sum", name)))

What the functional operators do otherwise (other layouts, dtypes that are mixed, a history that autograd would see),
and what they do not know, is left to torch's own function, which ends the graph.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch

from dynamo_capture.polyfills.registry import substitutes, substitutes_named

_REDUCTIONS = {
    "SUM": "sum",
    "AVG": "avg",
    "PRODUCT": "product",
    "MIN": "min",
    "MAX": "max",
    "BAND": "band",
    "BOR": "bor",
    "BXOR": "bxor",
}


def reduction_name(op: Any) -> str | None:
    """What the functional operators call a reduction; None where they have none, or it carries a factor."""
    known = getattr(op, "name", None) if type(op).__name__ == "RedOpType" else None
    return None if known is None else _REDUCTIONS.get(known)


class PendingWork:
    """What an asynchronous collective of a graph gives: ``results`` are to be written to ``targets``."""

    def __init__(self, targets: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> None:
        self.targets = targets
        self.results = results
        self.done = False

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for the results, and write them, once."""
        if not self.done:
            for target, result in zip(self.targets, self.results, strict=True):
                target.copy_(torch.ops._c10d_functional.wait_tensor(result).view(target.shape))
            self.done = True
        return True

    def synchronize(self) -> None:
        """As ``wait``."""
        self.wait()

    def is_completed(self) -> bool:
        """Nothing tells before the results are there: they are waited for."""
        return self.wait()

    def is_success(self) -> bool:
        """What fails raises where it is waited for."""
        return self.wait()

    def exception(self) -> None:
        """What fails raises where it is waited for."""
        self.wait()

    def result(self) -> list[torch.Tensor]:
        """The tensors that were written to."""
        self.wait()
        return list(self.targets)

    def get_future(self) -> torch.futures.Future[list[torch.Tensor]]:
        """A future that is there already."""
        future: torch.futures.Future[list[torch.Tensor]] = torch.futures.Future()
        future.set_result(self.result())
        return future


def _finish(targets: Sequence[Any], results: Sequence[Any], async_op: bool) -> PendingWork | None:
    work = PendingWork(targets, results)
    if async_op:
        return work
    work.wait()
    return None


def _is_dense(tensor: Any) -> bool:
    """Whether the elements lie side by side, in some order of the dimensions."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def _obstacle(tensors: Any, in_any_order: bool = False) -> str:
    """Why tensors are not written to and read as the functional operators would do it; empty if they are."""
    for tensor in tensors:
        if type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter:
            return "what is no plain tensor"
        if tensor.is_complex() or (tensor.dim() == 0 and not in_any_order):
            return "a complex tensor, or one without dimensions"
        if not tensor.is_contiguous() and not (in_any_order and _is_dense(tensor)):
            return "a tensor with gaps"
        if tensor.dtype != tensors[0].dtype or tensor.device != tensors[0].device:
            return "tensors of several dtypes or devices"
        if tensor.requires_grad and torch.is_grad_enabled():
            return "a tensor that requires grad, while autograd records"
    return ""


def left_to_torch(obstacle: str, function: Any, *args: Any) -> Any:
    """The call, which ends the graph: capture knows this function, and says why."""
    return function(*args)


_OTHER = "a reduction, a group or sizes that no functional operator takes"


if torch.distributed.is_available():
    from torch.distributed import distributed_c10d as c10d
    from torch.distributed.distributed_c10d import ReduceOp

    _all_gather_single = getattr(c10d, "all_gather_single", c10d.all_gather_into_tensor)
    _reduce_scatter_single = getattr(c10d, "reduce_scatter_single", c10d.reduce_scatter_tensor)
    _WRITTEN_ALL_REDUCE: Any = inspect.unwrap(c10d.all_reduce)
    _WRITTEN_BROADCAST: Any = inspect.unwrap(c10d.broadcast)
    _WRITTEN_ALL_GATHER_SINGLE: Any = inspect.unwrap(_all_gather_single)
    _WRITTEN_REDUCE_SCATTER_SINGLE: Any = inspect.unwrap(_reduce_scatter_single)
    _WRITTEN_ALL_TO_ALL_SINGLE: Any = inspect.unwrap(c10d.all_to_all_single)
    _WRITTEN_ALL_GATHER: Any = inspect.unwrap(c10d.all_gather)
    """Torch's functions as they are written, without the layer that logs exceptions."""

    def _group_of(group: Any) -> Any:
        """The group, or None where this process is not in it, or collectives are being gathered for one call."""
        if group is None:
            group = c10d._get_default_group()
        if c10d._rank_not_in_group(group) or c10d._world.pg_coalesce_state:
            return None
        return group

    def _is_whole(whole: Any, part: Any, members: Any) -> bool:
        """Whether a tensor consists of parts, one for each process; NCCL takes it in any shape."""
        if whole.is_cuda:
            return bool(whole.numel() == part.numel() * members.size())
        rows = part.shape[0] * members.size()
        return bool(whole.shape[0] == rows and whole.shape[1:] == part.shape[1:])

    @substitutes(c10d.all_reduce)
    def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
        """``tensor`` becomes the reduction over all processes."""
        name, members = reduction_name(op), _group_of(group)
        obstacle = _obstacle([tensor], in_any_order=True)
        if name is None or members is None or obstacle:
            return left_to_torch(obstacle or _OTHER, _WRITTEN_ALL_REDUCE, tensor, op, group, async_op)
        made = torch.ops._c10d_functional.all_reduce(tensor, name, members.group_name)
        return _finish([tensor], [made], async_op)

    @substitutes(c10d.broadcast)
    def broadcast(
        tensor: Any,
        src: int | None = None,
        group: Any = None,
        async_op: bool = False,
        group_src: int | None = None,
    ) -> Any:
        """``tensor`` becomes that of one process."""
        members = _group_of(group)
        obstacle = _obstacle([tensor], in_any_order=True)
        if members is None or obstacle:
            given = tensor, src, group, async_op, group_src
            return left_to_torch(obstacle or _OTHER, _WRITTEN_BROADCAST, *given)
        root = c10d._canonicalize_group_rank(members, src, group_src, return_global=False)
        made = torch.ops._c10d_functional.broadcast(tensor, root, members.group_name)
        return _finish([tensor], [made], async_op)

    @substitutes(_all_gather_single)
    def all_gather_single(
        output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
    ) -> Any:
        """``output_tensor`` becomes the tensors of all processes, one after the other."""
        members = _group_of(group)
        obstacle = _obstacle([output_tensor, input_tensor])
        if members is None or obstacle or not _is_whole(output_tensor, input_tensor, members):
            given = output_tensor, input_tensor, group, async_op
            return left_to_torch(obstacle or _OTHER, _WRITTEN_ALL_GATHER_SINGLE, *given)
        made = torch.ops._c10d_functional.all_gather_into_tensor(
            input_tensor, members.size(), members.group_name
        )
        return _finish([output_tensor], [made], async_op)

    @substitutes(_reduce_scatter_single)
    def reduce_scatter_single(
        output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
    ) -> Any:
        """``output`` becomes this process's part of the reduction."""
        name, members = reduction_name(op), _group_of(group)
        obstacle = _obstacle([output, input])
        if name is None or members is None or obstacle or not _is_whole(input, output, members):
            given = output, input, op, group, async_op
            return left_to_torch(obstacle or _OTHER, _WRITTEN_REDUCE_SCATTER_SINGLE, *given)
        made = torch.ops._c10d_functional.reduce_scatter_tensor(
            input.view(-1), name, members.size(), members.group_name
        )
        return _finish([output], [made], async_op)

    @substitutes(c10d.all_to_all_single)
    def all_to_all_single(
        output: Any,
        input: Any,
        output_split_sizes: Any = None,
        input_split_sizes: Any = None,
        group: Any = None,
        async_op: bool = False,
    ) -> Any:
        """``output`` becomes what each process has sent to this one."""
        members = _group_of(group)
        splits = [output_split_sizes, input_split_sizes]
        obstacle = _obstacle([output, input])
        if members is None or obstacle or not _splits(output, input, splits, members):
            given = output, input, *splits, group, async_op
            return left_to_torch(obstacle or _OTHER, _WRITTEN_ALL_TO_ALL_SINGLE, *given)
        sent, received = (
            list(sizes) if sizes else [tensor.shape[0] // members.size()] * members.size()
            for sizes, tensor in ((input_split_sizes, input), (output_split_sizes, output))
        )
        made = torch.ops._c10d_functional.all_to_all_single(input, received, sent, members.group_name)
        return _finish([output], [made], async_op)

    def _splits(output: Any, input: Any, given: list[Any], members: Any) -> bool:
        """Whether the numbers of rows fit, and rows are alike."""
        for tensor, sizes in zip((output, input), given, strict=True):
            if sizes and (len(sizes) != members.size() or sum(sizes) != tensor.shape[0]):
                return False
            if not sizes and tensor.shape[0] % members.size() != 0:
                return False
        return bool(output.shape[1:] == input.shape[1:])

    @substitutes(c10d.all_gather)
    def all_gather(tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False) -> Any:
        """The tensors of the list become those of the processes."""
        members = _group_of(group)
        obstacle = _obstacle([tensor, *tensor_list])
        is_even = members is not None and len(tensor_list) == members.size()
        if obstacle or not is_even or any(other.shape != tensor.shape for other in tensor_list):
            given = tensor_list, tensor, group, async_op
            return left_to_torch(obstacle or _OTHER, _WRITTEN_ALL_GATHER, *given)
        made = torch.ops._c10d_functional.all_gather_into_tensor(tensor, members.size(), members.group_name)
        return _Parts.of(tensor_list, made, tensor.shape[0], async_op)

    class _Parts(PendingWork):
        """One result whose rows go to several tensors."""

        @classmethod
        def of(cls, targets: Any, made: Any, rows: int, async_op: bool) -> Any:
            work = cls(list(targets), [made])
            work.rows = rows
            if async_op:
                return work
            work.wait()
            return None

        rows = 0

        def wait(self, timeout: timedelta | None = None) -> bool:
            if not self.done:
                whole = torch.ops._c10d_functional.wait_tensor(self.results[0])
                for index, target in enumerate(self.targets):
                    target.copy_(whole[index * self.rows : (index + 1) * self.rows])
                self.done = True
            return True


@substitutes_named("torch.distributed._functional_collectives", "_maybe_wrap_tensor")
def maybe_wrap_tensor(self: Any) -> Any:
    """The result of a functional collective is waited for in the graph."""
    return torch.ops._c10d_functional.wait_tensor(self)
