"""The kernel: one fused piece of loop IR with its parameters, named by its content."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import torch


class Access(Enum):
    """What a kernel does with a buffer parameter."""

    READ = "read"
    WRITE = "write"
    READ_WRITE = "read_write"


@dataclass(frozen=True, slots=True)
class BufferParameter:
    """A data pointer. ``name`` is local to the kernel (``in0``, ``out1``)."""

    name: str
    dtype: torch.dtype
    access: Access


@dataclass(frozen=True, slots=True)
class SizeParameter:
    """A 64-bit integer known when the kernel is called."""

    name: str


@dataclass(frozen=True, slots=True)
class FloatParameter:
    """A double known when the kernel is called."""

    name: str


Parameter: TypeAlias = BufferParameter | SizeParameter | FloatParameter


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function on memory. Equal kernels have equal names, in every program and process.

    As C++ its symbol is ``name`` and its signature ``void(pointers..., int64_t sizes..., double floats..., int64_t threads)``:
    the parameters in order, buffers first, then sizes, then floats, then the number of threads that it may use. Pointers of one
    call may be equal only where the program's ``Reuse`` made them so.
    """

    name: str
    parameters: tuple[Parameter, ...]
