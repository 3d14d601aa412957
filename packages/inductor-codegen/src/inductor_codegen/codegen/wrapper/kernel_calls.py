"""Kernel calls in an entry: a call of a C++ function on a CPU, a launch on a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch

from fx_interface.symbols import Expr, IntLike, Symbol
from inductor_codegen.codegen.cpp.loops.threads import Sharing, sharing_of
from inductor_codegen.codegen.triton.split import cells_of
from inductor_codegen.codegen.wrapper.arguments import quoted
from inductor_codegen.codegen.wrapper.integers import integer, symbol_name
from inductor_codegen.codegen.wrapper.labels import label_of_kernel
from inductor_codegen.codegen.wrapper.memory import MemoryWriter
from inductor_codegen.codegen.wrapper.preamble import GPU_FUNCTIONS, GPU_HELPERS, GPU_TYPES, KERNEL_HELPERS
from inductor_codegen.codegen.wrapper.text import Text
from inductor_codegen.ir.gpu.blocks import point_loops, row_loops
from inductor_codegen.ir.kernel import (
    Kernel,
    SizeParameter,
    extent_product,
)
from inductor_codegen.ir.program import Program, RunKernel
from inductor_codegen.runtime import device_numbers

CPU = torch.device("cpu")
ADDED = 4
"""Arguments that Triton may add to a kernel's own, at most: two as of Triton 3.6."""


class KernelCalls(Protocol):
    """Writes ``RunKernel`` steps, and what their text needs before it."""

    functions: Mapping[str, str]
    types: str

    def open(self) -> None:
        """What all calls need, at the head of the steps."""

    def write(self, step: RunKernel) -> None:
        """One call."""

    def declarations(self) -> str:
        """The kernels, outside of any function."""


class CpuKernels:
    """Kernels that are C++ functions of the same library."""

    functions: Mapping[str, str] = {}
    types = ""

    def __init__(self, program: Program, text: Text, memory: MemoryWriter, device: torch.device) -> None:
        self._text, self._memory = text, memory
        self._kernels = {kernel.name: kernel for kernel in program.kernels_on(device)}
        self._sharing = {name: sharing_of(kernel) for name, kernel in self._kernels.items()}

    def open(self) -> None:
        """How many threads a kernel may use."""
        if any(sharing is not Sharing.ALONE for sharing in self._sharing.values()):
            self._text.line("const int64_t threads = fx_threads();")

    def write(self, step: RunKernel) -> None:
        """The call; a kernel's failure is an index out of range."""
        given = [self._memory.pointer(name) for name in step.buffers]
        given += [f"(int64_t){integer(size)}" for size in step.sizes]
        given += [f"fx_bits(f_{name})" for name in step.floats]
        sharing = self._sharing[step.kernel]
        threads = "1" if sharing is Sharing.ALONE else "threads"
        run = "fx_share" if sharing is Sharing.CALLER else "fx_run"
        label = quoted(label_of_kernel(self._kernels[step.kernel], step.where))
        call = f"{run}({', '.join((label, step.kernel, threads, str(len(given)), *given))})"
        self._text.line(f"if ({call}) return fx_index_error({self._text.where(step.where)});")

    def declarations(self) -> str:
        """The functions' prototypes, and how they are called."""
        names = "".join(f"Kernel {name};\n" for name in self._kernels)
        return f'{KERNEL_HELPERS}extern "C" {{\n{names}}}\n' if names else ""


class KernelsOfBoth:
    """A GPU's kernels, and some on the CPU besides."""

    functions: Mapping[str, str] = GPU_FUNCTIONS
    types = GPU_TYPES

    def __init__(self, program: Program, text: Text, memory: MemoryWriter, device: torch.device) -> None:
        self._buffers = memory.buffers
        self._there = GpuKernels(program, text, memory, device)
        self._here = CpuKernels(program, text, memory, CPU)

    def open(self) -> None:
        """What both need."""
        self._there.open()
        self._here.open()

    def write(self, step: RunKernel) -> None:
        """A call where the step's tensors are."""
        (self._here if self._buffers[step.buffers[0]].device == CPU else self._there).write(step)

    def declarations(self) -> str:
        """Those of both."""
        return self._here.declarations() + self._there.declarations()


class GpuKernels:
    """Kernels that the runtime has compiled at their first launch."""

    functions: Mapping[str, str] = GPU_FUNCTIONS
    types = GPU_TYPES

    def __init__(self, program: Program, text: Text, memory: MemoryWriter, device: torch.device) -> None:
        self._text, self._memory, self._device = text, memory, device
        self._kernels = program.kernels_on(device)
        self._numbers = {kernel.name: number for number, kernel in enumerate(self._kernels)}

    def open(self) -> None:
        """Make the device the current one."""
        self._text.line(f"Gpu gpu; TRY(fx_gpu_enter({device_numbers(self._device)[1]}, &gpu));")

    def write(self, step: RunKernel) -> None:
        """The launch: addresses of all arguments, and how much there is to do."""
        number = self._numbers[step.kernel]
        kernel = self._kernels[number]
        given = [f"&{self._memory.pointer(name)}" for name in step.buffers]
        self._text.line(f"fx_at({quoted(label_of_kernel(kernel, step.where))});")
        self._text.line("{")
        for position, size in enumerate(step.sizes):
            self._text.line(f"  int64_t z{position} = {integer(size)};")
            given.append(f"&z{position}")
        for position, name in enumerate(step.floats):
            self._text.line(f"  double w{position} = f_{name};")
            given.append(f"&w{position}")
        given += ["&fx_nothing"] * ADDED
        points = extent_product(point_loops(kernel))
        work = f"{_of_call(extent_product(row_loops(kernel)), kernel)}, {_of_call(points, kernel)}"
        self._text.line(f"  void* a[] = {{{', '.join(given)}}};")
        self._text.line(f"  TRY(fx_gpu_launch(graph, &g{number}, &gpu, {work}, a)); }}")

    def declarations(self) -> str:
        """What the runtime keeps of each kernel."""
        return GPU_HELPERS + "".join(
            f"static GpuKernel g{number} = {{{number}, {_counts(kernel)}, nullptr}}; /* {kernel.name} */\n"
            for number, kernel in enumerate(self._kernels)
        )


def _of_call(value: IntLike, kernel: Kernel) -> str:
    """``value``, over the kernel's own sizes, which this call has in ``z0, z1 ...``.

    A kernel's size may bear the name of another size of the program, so that the names are bound in a function.
    """
    if not isinstance(value, Expr):
        return integer(value)
    places = {size.name: f"z{position}" for position, size in enumerate(_sizes(kernel))}
    symbols: list[Symbol] = sorted(value.symbols, key=lambda symbol: symbol.name)
    names = ", ".join(f"int64_t {symbol_name(symbol)}" for symbol in symbols)
    values = ", ".join(places[symbol.name] for symbol in symbols)
    return f"[]({names}) {{ return {integer(value)}; }}({values})"


def _counts(kernel: Kernel) -> str:
    """How many pointers, sizes and floats the kernel takes, and cell arrays if it can be split."""
    pointers, sizes = len(kernel.buffers), len(_sizes(kernel))
    floats = len(kernel.parameters) - pointers - sizes
    return f"{pointers}, {sizes}, {floats}, {len(cells_of(kernel))}"


def _sizes(kernel: Kernel) -> list[SizeParameter]:
    return [parameter for parameter in kernel.parameters if isinstance(parameter, SizeParameter)]


def kernel_calls(program: Program, text: Text, memory: MemoryWriter, device: torch.device) -> KernelCalls:
    """The writer of a program's kernel calls."""
    if device == CPU:
        return CpuKernels(program, text, memory, device)
    return (KernelsOfBoth if program.kernels_on(CPU) else GpuKernels)(program, text, memory, device)
