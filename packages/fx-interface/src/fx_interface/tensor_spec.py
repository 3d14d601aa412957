"""Specs: what a graph knows of each value without holding it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias, Union

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import Expr, IntLike, product

SPEC_KEY = "spec"
"""The key of ``torch.fx.Node.meta`` under which every value of a graph keeps its spec."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A strided tensor's metadata.

    ``sizes`` and ``strides`` (in elements) are ints or symbolic integers. ``alias`` numbers an alias set: values of one
    graph with the same number may share memory; None means that the value shares memory with no other value.
    """

    sizes: tuple[IntLike, ...]
    strides: tuple[IntLike, ...]
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool = False
    alias: int | None = None

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.sizes)

    @property
    def numel(self) -> IntLike:
        """The number of elements."""
        return product(self.sizes)

    @property
    def extent(self) -> IntLike:
        """From the first to behind the last element in memory, in elements; 0 without elements."""
        if 0 in self.sizes:
            return 0
        total: IntLike = 1
        for size, stride in zip(self.sizes, self.strides, strict=True):
            total = total + (size - 1) * stride
        return total

    @property
    def is_contiguous(self) -> bool:
        """Whether the strides are row-major over the sizes; dimensions of size 1 do not count."""
        expected: IntLike = 1
        for size, stride in zip(reversed(self.sizes), reversed(self.strides), strict=True):
            if size == 1:
                continue
            if stride != expected:
                return False
            expected = expected * size
        return True

    @property
    def is_static(self) -> bool:
        """Whether no size or stride is symbolic."""
        return Expr not in map(type, self.sizes) and Expr not in map(type, self.strides)

    def __str__(self) -> str:
        sizes = ", ".join(map(str, self.sizes))
        strides = ", ".join(map(str, self.strides))
        text = f"{str(self.dtype).removeprefix('torch.')}[{sizes}]"
        if not self.is_contiguous:
            text += f" strides [{strides}]"
        return text if self.device.type == "cpu" else f"{text} {self.device}"


@dataclass(frozen=True, slots=True)
class SymSpec:
    """An integer value: a size, or a number computed from sizes. A node with this spec denotes ``expr``."""

    expr: IntLike


@dataclass(frozen=True, slots=True)
class SymFloatSpec:
    """A floating-point scalar known only at run time (a Python float input, or ``item()``)."""

    hint: float | None = None


@dataclass(frozen=True, slots=True)
class ObjectSpec:
    """A value that is neither tensor nor number (an RNG state, a None): only its type's name is known."""

    type_name: str


ValueSpec: TypeAlias = Union[
    TensorSpec, SymSpec, SymFloatSpec, ObjectSpec, tuple["ValueSpec", ...], list["ValueSpec"], None
]
"""Spec of a node's value. Operators with several results have a tuple (a list where the schema returns Tensor[])."""


def located(device: torch.device) -> torch.device:
    """The device with the index that tensors made there have: ``cuda`` means the current one."""
    if device.index is not None or device.type in ("cpu", "meta"):
        return device
    return torch.device(device.type, torch.get_device_module(device).current_device())


def contiguous_strides(sizes: Sequence[IntLike]) -> tuple[IntLike, ...]:
    """Row-major strides; a dimension of size 0 counts as 1, as torch has it."""
    return _row_major(tuple(sizes))


@lru_cache(maxsize=16384)
def _row_major(sizes: tuple[IntLike, ...]) -> tuple[IntLike, ...]:
    strides: list[IntLike] = []
    running: IntLike = 1
    for size in reversed(sizes):
        strides.append(running)
        if not (isinstance(size, int) and size == 0):
            running = running * size
    return tuple(reversed(strides))


def spec_of(tensor: torch.Tensor) -> TensorSpec:
    """The static spec of a real strided tensor."""
    return TensorSpec(
        tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype, tensor.device, tensor.requires_grad
    )


def with_grad(spec: TensorSpec, requires_grad: bool) -> TensorSpec:
    """``spec`` that says whether autograd follows the tensor."""
    if not requires_grad:
        return spec
    return TensorSpec(spec.sizes, spec.strides, spec.dtype, spec.device, True, spec.alias)


def is_differentiable(dtype: torch.dtype) -> bool:
    """Whether tensors of this dtype can require grad."""
    return dtype.is_floating_point or dtype.is_complex
