"""Copies of a graph's inputs: other memory, and otherwise the same for a program that looks at them.

Inputs that share memory share it as copies too, at the same offsets; a view is a view; what requires grad is a leaf or
the result of an operation as it was. Behind such a result stands a leaf of our own, which gathers its gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from fxstack.verification.compare import nudge_


class _Computed(torch.autograd.Function):
    """Gives a tensor a history: what arrives as its gradient goes to a leaf."""

    @staticmethod
    def forward(ctx: Any, leaf: Tensor, holder: list[Tensor]) -> Tensor:
        """The tensor in ``holder``."""
        return holder.pop()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        """The gradient as it is."""
        return gradient, None


class Copies:
    """``values`` stand for the inputs; ``leaves`` maps positions of inputs to what gathers their gradients."""

    def __init__(self, inputs: Sequence[Any]) -> None:
        self._storages: dict[int, torch.UntypedStorage] = {}
        self._made: dict[int, tuple[Tensor, Tensor | None]] = {}
        self.values: list[Any] = []
        self.leaves: dict[int, Tensor] = {}
        with torch._C.DisableTorchFunction():
            for index, value in enumerate(inputs):
                if not isinstance(value, Tensor):
                    self.values.append(value)
                    continue
                copied, leaf = self._copy(value)
                self.values.append(copied)
                if leaf is not None and all(leaf is not other for other in self.leaves.values()):
                    self.leaves[index] = leaf

    def nudge(self, generator: torch.Generator) -> None:
        """Change each number by a rounding."""
        seen: set[int] = set()
        for tensor in self.values:
            if isinstance(tensor, Tensor) and tensor.untyped_storage()._cdata not in seen:
                memory = tensor.untyped_storage()
                seen.add(memory._cdata)
                flat = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
                count = memory.nbytes() // tensor.dtype.itemsize
                nudge_(flat.set_(memory, 0, (count,), (1,)), generator)

    def _copy(self, tensor: Tensor) -> tuple[Tensor, Tensor | None]:
        found = self._made.get(id(tensor))
        if found is None:
            with torch.inference_mode(tensor.is_inference()):
                found = self._view(tensor) if self._is_plain_view(tensor) else self._root(tensor)
            self._made[id(tensor)] = found
        return found

    @staticmethod
    def _is_plain_view(tensor: Tensor) -> bool:
        base = tensor._base
        return base is not None and not tensor.is_inference() and base.dtype == tensor.dtype

    def _view(self, tensor: Tensor) -> tuple[Tensor, Tensor | None]:
        """A view of the copy of the base; it may require grad by itself."""
        base = tensor._base
        assert base is not None
        root, leaf = self._copy(base)
        follows = tensor.requires_grad and base.requires_grad
        with torch.set_grad_enabled(follows):
            made = root.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
            made = made.conj() if tensor.is_conj() else made
            made = torch._neg_view(made) if tensor.is_neg() else made
        if tensor.requires_grad and not follows:
            made.requires_grad_()
            leaf = made
        return made, leaf if tensor.requires_grad else None

    def _root(self, tensor: Tensor) -> tuple[Tensor, Tensor | None]:
        memory = tensor.untyped_storage()
        storage = self._storages.get(memory._cdata)
        if storage is None:
            storage = self._storages[memory._cdata] = memory.clone()  # type: ignore[no-untyped-call]
        made = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        made.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())
        made = torch._conj(made) if tensor.is_conj() else made
        made = torch._neg_view(made) if tensor.is_neg() else made
        if not tensor.requires_grad:
            return made, None
        if tensor.is_leaf:
            if isinstance(tensor, torch.nn.Parameter):
                made = torch.nn.Parameter(made)
            made.requires_grad_()
            return made, made
        leaf = torch.zeros_like(made.detach()).requires_grad_()
        with torch.enable_grad():
            return _Computed.apply(leaf, [made]), leaf  # type: ignore[no-untyped-call]
