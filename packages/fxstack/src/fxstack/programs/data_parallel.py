"""What ``DistributedDataParallel``, around the program that is compiled, wants to have early: gradients in buckets."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node


def cuts_for_buckets(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Collection[Node]:
    """Where to cut a graph that is compiled in the forward of ``DistributedDataParallel``; nowhere for others.

    It sends the gradients of a bucket when all of them are there. The first bucket is small, so that sending begins
    early.
    """
    wrapper = _active()
    if wrapper is None or not torch.is_grad_enabled():
        return ()
    trained = [isinstance(value, torch.Tensor) and value.requires_grad for value in example_inputs]
    if not any(trained):
        return ()
    from aot_autograd.control_flow import bucket_cuts  # which few programs need

    return bucket_cuts(graph_module, trained, _capacities(wrapper))


def _active() -> Any:
    """The wrapper whose forward runs, if there is one."""
    if not torch.distributed.is_available():
        return None
    from torch.nn.parallel import DistributedDataParallel

    return getattr(DistributedDataParallel, "_active_ddp_module", None)


def _capacities(wrapper: Any) -> list[int]:
    """How many bytes each bucket takes, in the order in which they fill; the last number is for all further ones."""
    listed = list(getattr(wrapper, "bucket_bytes_cap_list", None) or ())
    if listed:
        return listed
    usual = int(wrapper.bucket_bytes_cap)
    by_default = getattr(wrapper, "bucket_bytes_cap_default", False)
    first = int(getattr(torch.distributed, "_DEFAULT_FIRST_BUCKET_BYTES", usual))
    return [min(first, usual), usual] if by_default else [usual]
