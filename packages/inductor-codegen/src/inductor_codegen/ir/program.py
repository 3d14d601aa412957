"""The program: what the scheduler produces and a wrapper generator consumes, a flat list of steps over named
buffers.

A program is straight-line: ``steps`` run in order, every name is defined once (by an input or a step) before
it is used, and sizes are integer expressions over the symbols that ``inputs`` and library calls bind. Nothing
here knows C++ or Triton.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias, Union

import torch
from torch._ops import OpOverload

from fx_interface.errors import UserLocation
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike, Symbol
from inductor_codegen.ir.kernel import Kernel


@dataclass(frozen=True, slots=True)
class Buffer:
    """A strided tensor by name. ``sizes`` and ``strides`` count elements of ``dtype``; ``name`` is unique in
    a program.
    """

    name: str
    sizes: tuple[IntLike, ...]
    strides: tuple[IntLike, ...]
    dtype: torch.dtype
    device: torch.device


@dataclass(frozen=True, slots=True)
class SymbolInput:
    """An input that is a Python int, and binds ``symbol``."""

    symbol: Symbol


@dataclass(frozen=True, slots=True)
class FloatInput:
    """An input that is a Python float, known as ``name``."""

    name: str


@dataclass(frozen=True, slots=True)
class UnusedInput:
    """An input that no step reads; of any type, never unwrapped."""


ProgramInput: TypeAlias = Buffer | SymbolInput | FloatInput | UnusedInput


class Storage(Enum):
    """Whose memory an allocation must be."""

    TENSOR = "tensor"
    """An output shares this memory: it must belong to torch and may outlive the call."""
    SCRATCH = "scratch"
    """Dead when the call ends at the latest: any memory, uninitialised, aligned to 64 bytes."""


@dataclass(frozen=True, slots=True)
class Allocate:
    """New uninitialised memory for ``buffer``; it spans 1 + sum((size - 1) * stride) elements, none if a size
    is 0.
    """

    buffer: Buffer
    storage: Storage


@dataclass(frozen=True, slots=True)
class Reuse:
    """``buffer`` takes over the memory of ``of`` and what is in it; ``of`` is not named again, not even to be
    freed.

    A kernel that works in place is given the new name for both its parameters. Same dtype, same number of
    elements."""

    buffer: Buffer
    of: str


@dataclass(frozen=True, slots=True)
class View:
    """``buffer`` is a strided view of ``of``: same dtype, starting ``offset`` elements behind ``of``'s first
    element (``of``'s data pointer, not its storage's start). ``of`` may be an input. The view keeps ``of``'s
    memory alive."""

    buffer: Buffer
    of: str
    offset: IntLike


@dataclass(frozen=True, slots=True)
class Free:
    """``name`` is not used again. Memory goes back once the owner and all its views are freed (the owner
    comes last). Of an input, the caller may have left the memory to this call.
    """

    name: str


@dataclass(frozen=True, slots=True)
class RunKernel:
    """Call a kernel of the program with data pointers of ``buffers``, then the integers ``sizes``, then the
    Python floats ``floats`` (names of ``FloatInput``), in the order of ``Kernel.parameters``, and last the
    number of threads. A result other than 0 is an IndexError of the user's program."""

    kernel: str
    buffers: tuple[str, ...]
    sizes: tuple[IntLike, ...]
    floats: tuple[str, ...] = ()
    where: UserLocation | None = None


@dataclass(frozen=True, slots=True)
class BufferRef:
    """An argument or output that is the tensor ``name``."""

    name: str


@dataclass(frozen=True, slots=True)
class FloatRef:
    """An argument that is the run-time Python float ``name``."""

    name: str


Constant: TypeAlias = (
    float
    | complex
    | bool
    | str
    | torch.dtype
    | torch.device
    | torch.layout
    | torch.memory_format
    | torch.Generator
)
Argument: TypeAlias = Union[BufferRef, FloatRef, IntLike, Constant, tuple["Argument", ...], None]


@dataclass(frozen=True, slots=True)
class Born:
    """A symbol whose value a library call tells: the size ``dim`` of its result number ``result``, or, where there is
    none, the integer that it returns."""

    symbol: Symbol
    result: int | None = None
    dim: int = 0


@dataclass(frozen=True, slots=True)
class CallExtern:
    """Call a library operator as the schema of ``op`` says.

    ``results`` has one entry for each tensor of the flattened result, in order; None marks a tensor that
    nobody reads. Each result has exactly the given sizes and strides; the wrapper chooses the functional or
    an out variant. It is new memory, except where the schema says that it may alias an argument
    (``as_strided``): then the arguments stay alive as long as the results. From this step on the symbols in ``born``
    have a value.
    """

    op: OpOverload
    args: tuple[Argument, ...]
    kwargs: tuple[tuple[str, Argument], ...]
    results: tuple[Buffer | None, ...]
    where: UserLocation | None = None
    born: tuple[Born, ...] = ()


Step: TypeAlias = Allocate | Reuse | View | Free | RunKernel | CallExtern

Output: TypeAlias = BufferRef | FloatRef | IntLike | None


def defined_by(step: Step) -> tuple[Buffer, ...]:
    """The buffers that ``step`` brings into being."""
    match step:
        case Free() | RunKernel():  # most are, and every pass asks
            return ()
        case CallExtern():
            return tuple([buffer for buffer in step.results if buffer is not None])
    return (step.buffer,)


@dataclass(frozen=True, slots=True)
class Program:
    """One compiled graph, before any text is made of it. ``numbers``: floats by name that inputs on the CPU hold, of
    float32 or float64 and without dimensions; they are read before the first step.

    ``outputs`` in order: a tensor (an input's own name means that very input is returned; a name may come
    twice), an integer over the symbols, or None. ``kernels`` are the distinct kernels that ``RunKernel``
    steps name.
    """

    inputs: tuple[ProgramInput, ...]
    kernels: tuple[Kernel, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Output, ...]
    numbers: tuple[tuple[str, str], ...] = ()

    def buffers(self) -> dict[str, Buffer]:
        """Every buffer by name: inputs and all that steps define."""
        named = {item.name: item for item in self.inputs if isinstance(item, Buffer)}
        for step in self.steps:
            for buffer in defined_by(step):
                named[buffer.name] = buffer
        return named

    def kernels_on(self, device: torch.device) -> tuple[Kernel, ...]:
        """The kernels that a step runs on this device, in the order of ``kernels``."""
        buffers = self.buffers()
        runs = [step for step in self.steps if isinstance(step, RunKernel)]
        found = {step.kernel for step in runs if buffers[step.buffers[0]].device == device}
        return tuple(kernel for kernel in self.kernels if kernel.name in found)

    def born(self) -> frozenset[Symbol]:
        """The symbols that get their value while the program runs."""
        calls = (step for step in self.steps if isinstance(step, CallExtern))
        return frozenset(born.symbol for call in calls for born in call.born)

    def escaping(self) -> frozenset[str]:
        """Names of buffers whose memory an output shares: they must be torch's own."""
        found = {output.name for output in self.outputs if isinstance(output, BufferRef)}
        for step in reversed(self.steps):
            if isinstance(step, View | Reuse) and step.buffer.name in found:
                found.add(step.of)
        return frozenset(found)
