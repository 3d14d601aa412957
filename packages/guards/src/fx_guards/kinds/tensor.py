"""Guards on a tensor's metadata, and on which tensors share memory."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from typing import Any, ClassVar

import torch

from fx_guards.kinds.base import GuardRecord, guard_kind, short, type_name
from fx_interface.errors import UserLocation
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import Source
from fx_interface.torch_internals.tensor_extents import torchs_own


@guard_kind
@dataclass(frozen=True, slots=True)
class TensorMatch(GuardRecord):
    """A tensor of exactly this Python type, dtype, device, rank, sizes, strides and dispatch keys.

    ``sizes`` and ``strides`` (in elements) hold None where any number holds. ``dispatch_keys`` is torch's raw key set:
    layout, conjugation, inference tensors, wrappers and functional transforms all show in it. ``is_leaf`` None: not
    checked.
    """

    kind: ClassVar[str] = "tensor_match"
    type: type
    dtype: torch.dtype
    device: torch.device
    sizes: tuple[int | None, ...]
    strides: tuple[int | None, ...] | None
    requires_grad: bool
    dispatch_keys: int
    is_leaf: bool | None = None

    def holds(self, value: Any) -> bool:
        return type(value) is self.type and self._difference(value) is None

    def explain(self, value: Any) -> str:
        if type(value) is not self.type:
            return f"expected type {type_name(self.type)}, got {type_name(type(value))}: {short(value)}"
        return self._difference(value) or "holds"

    def _difference(self, tensor: Any) -> str | None:
        try:
            with torch._C.DisableTorchFunction():  # reading is no operation of the program
                return self._first_difference(tensor)
        except Exception as error:
            return f"the tensor's metadata cannot be read: {error}"

    def _first_difference(self, tensor: torch.Tensor) -> str | None:
        facts: tuple[tuple[str, Any, Any], ...] = (
            ("dtype", self.dtype, torchs_own(tensor, "dtype")),
            ("device", self.device, torchs_own(tensor, "device")),
            ("requires_grad", self.requires_grad, torchs_own(tensor, "requires_grad")),
            ("rank", len(self.sizes), torch.Tensor.dim(tensor)),
        )
        for name, expected, actual in facts:
            if expected != actual:
                return f"expected {name} {expected}, got {actual}"
        sizes = tuple(torch.Tensor.size(tensor))  # whatever a subclass has put in the place of ``shape``
        if not _matches(self.sizes, sizes):
            return f"expected sizes {_pattern(self.sizes)}, got {_pattern(sizes)}"
        strides = None if self.strides is None else torch.Tensor.stride(tensor)
        if self.strides is not None and strides is not None and not _matches(self.strides, strides):
            return f"expected strides {_pattern(self.strides)}, got {_pattern(strides)}"
        keys = dispatch_keys(tensor)
        if keys != self.dispatch_keys:
            return f"expected dispatch keys {self.dispatch_keys:#x}, got {keys:#x} ({torch._C._dispatch_keys(tensor)})"
        is_leaf = torchs_own(tensor, "is_leaf")
        if self.is_leaf is not None and is_leaf != self.is_leaf:
            return f"expected is_leaf {self.is_leaf}, got {is_leaf}"
        return None


@guard_kind
@dataclass(frozen=True, slots=True)
class StorageGroups(GuardRecord):
    """Which of these tensors share memory: tensor i's storage is that of group ``groups[i]``, numbered by first use.

    ``(0, 1, 0)``: the first and third are views of one storage, the second has its own. Needed where some are mutated.
    """

    kind: ClassVar[str] = "storage_groups"
    takes_tuple: ClassVar[bool] = True
    others: tuple[Source, ...]
    groups: tuple[int, ...]

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self.source, *self.others)

    def holds(self, value: Any) -> bool:
        try:
            return _storage_groups(value) == self.groups
        except Exception:
            return False

    def explain(self, value: Any) -> str:
        try:
            actual = _storage_groups(value)
        except Exception as error:
            return f"the tensors' storages cannot be read: {error}"
        for i, j in combinations(range(len(actual)), 2):
            if (actual[i] == actual[j]) != (self.groups[i] == self.groups[j]):
                change = "now share memory" if actual[i] == actual[j] else "no longer share memory"
                return f"{self.sources[i]} and {self.sources[j]} {change}"
        return "holds"


def _storage_groups(tensors: Iterable[torch.Tensor]) -> tuple[int, ...]:
    numbers: dict[int, int] = {}
    with torch._C.DisableTorchFunction():  # reading is no operation of the program
        return tuple(numbers.setdefault(t.untyped_storage()._cdata, len(numbers)) for t in tensors)


def storage_groups(sources: Sequence[Source], tensors: Sequence[torch.Tensor]) -> StorageGroups:
    """The guard that these tensors' sharing of memory satisfies."""
    return StorageGroups(sources[0], tuple(sources[1:]), _storage_groups(tensors))


def tensor_match(
    source: Source,
    tensor: torch.Tensor,
    *,
    dynamic_sizes: Collection[int] = (),
    dynamic_strides: Collection[int] = (),
    where: UserLocation | None = None,
) -> TensorMatch:
    """The guard that ``tensor`` satisfies, with the given dimensions' sizes and strides left open.

    A tensor without strides (sparse) gets a guard without them.
    """
    shape = torch.Tensor.size(tensor)  # whatever a subclass has put in the place of ``shape``
    sizes = tuple(None if d in dynamic_sizes else int(n) for d, n in enumerate(shape))
    strides: tuple[int | None, ...] | None = None
    if torchs_own(tensor, "layout") is torch.strided:
        strides = tuple(
            None if d in dynamic_strides else int(n) for d, n in enumerate(torch.Tensor.stride(tensor))
        )
    return TensorMatch(
        source,
        type(tensor),
        torchs_own(tensor, "dtype"),
        torchs_own(tensor, "device"),
        sizes,
        strides,
        torchs_own(tensor, "requires_grad"),
        dispatch_keys(tensor),
        where=where,
    )


def dispatch_keys(tensor: torch.Tensor) -> int:
    """The tensor's raw dispatch-key set."""
    return int(torch._C._dispatch_keys(tensor).raw_repr())


def _matches(pattern: tuple[int | None, ...], actual: tuple[int, ...]) -> bool:
    return len(pattern) == len(actual) and all(
        p is None or p == a for p, a in zip(pattern, actual, strict=True)
    )


def _pattern(pattern: tuple[int | None, ...]) -> str:
    return "[" + ", ".join("*" if n is None else str(n) for n in pattern) + "]"
