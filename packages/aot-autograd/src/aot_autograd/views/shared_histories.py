"""Results that share memory and get their gradients through one of them, not through the base of their memory.

    class Fill(torch.autograd.Function):       # what it returns is its argument's memory, with a history of its own
        def forward(ctx, memory, value): ...
    k = Fill.apply(torch.empty(3, 2), value)
    return k, k[:, 1]

The base of the memory has no gradient there, ``k`` has, and every other result is a view of ``k``. So ``k`` is what the
others are made of again.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from aot_autograd.recording.storage import Storage, ViewStep
from aot_autograd.recording.trace import TracedTensor


def reformed_base(storage: Storage, sharing: Sequence[TracedTensor]) -> TracedTensor | None:
    """The one of the results ``sharing`` a memory that was its base, and has another form since (``t_``): in eager it
    is no view, and the others are views of it. None where one of them is older than the form."""
    root: TracedTensor | None = storage.reformed
    if root is None or not any(one is root for one in sharing):
        return None
    if any(one.requires_grad for one in sharing):
        follows = all(one is root or _follows(one, root) for one in sharing)
    else:
        follows = all(one is root or steps_behind(one, root) for one in sharing)
    return root if follows else None


def whole_with_history(storage: Storage, sharing: Sequence[TracedTensor]) -> TracedTensor | None:
    """The one of the results ``sharing`` a memory that shows all of it, has a history that its base has not, and leads
    on to the gradients of all others; None if there is none."""
    if storage.base.requires_grad or storage.input_index is not None:
        return None
    for tensor in sharing:
        if tensor.requires_grad and _shows_all(tensor, storage):
            return tensor if all(one is tensor or _follows(one, tensor) for one in sharing) else None
    return None


def steps_behind(tensor: TracedTensor, root: TracedTensor) -> list[ViewStep] | None:
    """The views that lead from ``root`` to the tensor, in order; None if it is not made of that."""
    steps: list[ViewStep] = []
    step = tensor.view_step
    while step is not root.view_step:
        if step is None:
            return None
        steps.append(step)
        step = step.parent
    return steps[::-1]


def _shows_all(tensor: TracedTensor, storage: Storage) -> bool:
    """Whether the tensor, a view, has the form of the memory's base: then it has its elements too."""
    mine, whole = tensor.value.spec, storage.value.spec
    return (
        tensor.view_step is not None
        and tensor.offset == storage.begin
        and (mine.sizes, mine.strides, mine.dtype) == (whole.sizes, whole.strides, whole.dtype)
    )


def _follows(tensor: TracedTensor, root: TracedTensor) -> bool:
    """Whether autograd comes from the tensor to ``root`` by the views in between, one node for each, or the tensor is
    detached from it. (Without gradients a view of ``root`` would require grad as soon as ``root`` is a base.)"""
    steps = steps_behind(tensor, root)
    if not steps:
        return False
    is_detached = any(step.op is torch.ops.aten.detach.default for step in steps)
    if is_detached or not tensor.requires_grad:
        return is_detached and not tensor.requires_grad
    if any(step.no_grad for step in steps):
        return False
    node = tensor.grad_fn
    for _ in steps:
        following = node.next_functions if node is not None else ()
        node = following[0][0] if len(following) == 1 else None
    return node is not None and node is root.grad_fn
