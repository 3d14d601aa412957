"""For tests: build graphs of primitives from examples, and run a program step by step through ctypes.

The stepper is the reference for wrapper generators: it does what each step's docstring says, with torch's own
allocations.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import struct
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_aggregate

from fx_interface.graph_tools.builder import GraphBuilder
from fx_interface.symbols import Expr, IntLike, Symbol, evaluate
from fx_interface.tensor_spec import SymSpec, TensorSpec, ValueSpec
from inductor_codegen.codegen.cpp.emit import emit_source
from inductor_codegen.codegen.cpp.loops.threads import Sharing, sharing_of
from inductor_codegen.codegen.cpp.text.operations import WIDE
from inductor_codegen.ir.interpret import interpret
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.ir.program import (
    Allocate,
    Argument,
    Buffer,
    BufferRef,
    CallExtern,
    FloatInput,
    FloatRef,
    Free,
    Output,
    Program,
    Reuse,
    RunKernel,
    Step,
    SymbolInput,
    View,
)
from inductor_codegen.ir.verify import verify_kernel
from inductor_codegen.temporary import temporary_folder
from inductor_codegen.toolchain.cpp_compiler import KERNEL_FLAGS, Unit, find_compiler
from inductor_codegen.toolchain.shared_libraries import build_library


class ExampleGraph:
    """Builds a graph in dialect ``prims`` by running each primitive on example values.

    Symbols get distinct primes as hints, so that a size of the example tells which product of symbols it is:
    use static sizes that no such prime divides.
    """

    PRIMES = (11, 13, 17, 19)

    def __init__(self) -> None:
        self.builder = GraphBuilder("prims")
        self.values: dict[Node, Any] = {}
        self.symbols: dict[int, Expr] = {}
        self.examples: list[Any] = []

    def symbol(self, low: int = 2, high: int | None = None) -> Expr:
        """A new symbolic size, passed as an input; ``low`` and ``high`` bound it."""
        prime = self.PRIMES[len(self.symbols)]
        made = self.builder.size(prime, name=f"s{len(self.symbols)}", low=low, high=high)
        self.symbols[prime] = made
        self.examples.append(prime)
        return made

    def input(self, example: torch.Tensor, name: str = "x") -> Node:
        """A tensor input like ``example``."""
        node = self.builder.input(self._spec(example), name=name)
        self.values[node] = example
        self.examples.append(example)
        return node

    def call(self, target: Callable[..., Any], *args: Any, **kwargs: Any) -> Node:
        """Call a primitive or a library operator."""
        result = target(*self._real(args), **self._real(kwargs))
        node = self.builder.call(target, *args, spec=self._spec(result), **kwargs)
        self.values[node] = result
        return node

    def build(self, *outputs: Any) -> GraphModule:
        """The finished graph."""
        return self.builder.build(*outputs)

    def _real(self, arg: Any) -> Any:
        if isinstance(arg, Node):
            return self.values[arg]
        if isinstance(arg, Expr):
            return self.builder.env.hint(arg)
        if isinstance(arg, (tuple, list)):
            return type(arg)(self._real(item) for item in arg)
        return {key: self._real(item) for key, item in arg.items()} if isinstance(arg, dict) else arg

    def _spec(self, value: Any) -> ValueSpec:
        if isinstance(value, torch.Tensor):
            sizes = tuple(map(self._decode, value.shape))
            strides = tuple(map(self._decode, value.stride()))
            return TensorSpec(sizes, strides, value.dtype, value.device)
        if isinstance(value, (tuple, list)):
            return tuple(self._spec(item) for item in value)
        return SymSpec(self._decode(value)) if isinstance(value, int) else None

    def _decode(self, number: int) -> IntLike:
        factor: IntLike = 1
        for prime, made in self.symbols.items():
            while number and number % prime == 0:
                factor, number = factor * made, number // prime
        return factor * number


class GpuGraph(ExampleGraph):
    """The same with all tensors on a GPU, as far as the graph knows: for what is decided by the device."""

    def __init__(self) -> None:
        super().__init__()
        self._here = False

    def here(self, make: Callable[..., Node], *args: Any, **kwargs: Any) -> Node:
        """What ``make`` adds to the graph, on the CPU."""
        self._here = True
        node = make(*args, **kwargs)
        self._here = False
        return node

    def _spec(self, value: Any) -> ValueSpec:
        spec = super()._spec(value)
        return spec if self._here else _located(spec)


def _located(spec: ValueSpec) -> ValueSpec:
    if isinstance(spec, TensorSpec):
        return replace(spec, device=torch.device("cuda", 0))
    return type(spec)(map(_located, spec)) if isinstance(spec, (tuple, list)) else spec


def on_gpu_alike(graph_module: GraphModule) -> GraphModule:
    """A graph of the CPU's, changed so that its specs and arguments say GPU 0: nothing of it can run here."""
    gpu = torch.device("cuda", 0)

    def moved(argument: Any) -> Any:
        return gpu if isinstance(argument, torch.device) and argument.type == "cpu" else argument

    for module in graph_module.modules():
        for node in module.graph.nodes if isinstance(module, GraphModule) else ():
            node.meta.update({key: _located(value) for key, value in node.meta.items()})
            node.args, node.kwargs = map_aggregate(node.args, moved), map_aggregate(node.kwargs, moved)
    return graph_module


def on_device(value: Any, device: torch.device) -> Any:
    """A program, or a part of one, with every buffer on ``device``: a GPU's program runs on the CPU so."""
    if isinstance(value, tuple):
        return tuple(on_device(item, device) for item in value)
    if isinstance(value, torch.device):
        return device
    if isinstance(value, Buffer):
        return replace(value, device=device)
    if is_dataclass(value) and not isinstance(value, type) and "program" in type(value).__module__:
        changed = {field.name: on_device(getattr(value, field.name), device) for field in fields(value)}
        return replace(value, **changed)
    return value


def load_kernels(kernels: Sequence[Kernel], level: str | None = None) -> dict[str, Any]:
    """Compile kernels, for this processor or any of a ``level``, and return them as ctypes functions by name."""
    if not kernels:
        return {}
    flags = (*KERNEL_FLAGS, "-fvisibility=default")
    with temporary_folder() as folder:
        text = emit_source(kernels)
        compiler = find_compiler() if level is None else find_compiler().for_level(level)
        build_library(compiler, [Unit("kernels", text, flags, WIDE in text)], folder, "kernels.so")
        library = ctypes.CDLL(str(folder.path / "kernels.so"))
    found = {}
    for kernel in kernels:
        function = getattr(library, kernel.name)
        function.restype = ctypes.c_int32
        found[kernel.name] = function
    return found


class Stepper:
    """Runs a program step by step, kernels as compiled C++ (of a processor ``level`` where one is given) or
    ``interpreted``. Fresh memory is filled with garbage, so that nothing relies on zeros.
    """

    def __init__(
        self, program: Program, threads: int = 1, *, interpreted: bool = False, level: str | None = None
    ) -> None:
        self.program = program
        self.threads = threads
        for kernel in program.kernels:
            verify_kernel(kernel)
        self.kernels = {kernel.name: kernel for kernel in program.kernels}
        self.functions = None if interpreted else load_kernels(program.kernels, level)

    def __call__(self, *inputs: Any) -> list[Any]:
        """The program's outputs for these inputs. IndexError where a kernel reports an index out of range."""
        run = _Run(self, inputs)
        for step in self.program.steps:
            run.step(step)
        return [run.output(output) for output in self.program.outputs]


class _Run:
    def __init__(self, stepper: Stepper, inputs: Sequence[Any]) -> None:
        self.stepper = stepper
        self.symbols: dict[Symbol, int] = {}
        self.tensors: dict[str, torch.Tensor] = {}
        self.floats: dict[str, float] = {}
        for declared, given in zip(stepper.program.inputs, inputs, strict=True):
            match declared:
                case Buffer(name):
                    self.tensors[name] = given
                case SymbolInput(atom):
                    self.symbols[atom] = given
                case FloatInput(name):
                    self.floats[name] = given
        self.floats.update({name: float(self.tensors[given]) for name, given in stepper.program.numbers})

    def size(self, value: IntLike) -> int:
        return evaluate(value, self.symbols)

    def sizes(self, values: Sequence[IntLike]) -> list[int]:
        return [self.size(value) for value in values]

    def step(self, step: Step) -> None:
        tensors = self.tensors
        match step:
            case Allocate(buffer):
                made = torch.empty_strided(
                    self.sizes(buffer.sizes),
                    self.sizes(buffer.strides),
                    dtype=buffer.dtype,
                    device=buffer.device,
                )
                made.fill_(91 if made.dtype != torch.bool else True)
                tensors[buffer.name] = made
            case Reuse(buffer, of):
                old = tensors.pop(of)
                tensors[buffer.name] = old.as_strided(
                    self.sizes(buffer.sizes), self.sizes(buffer.strides), old.storage_offset()
                )
            case View(buffer, of, offset):
                base = tensors[of]
                start = base.storage_offset() + self.size(offset)
                tensors[buffer.name] = base.as_strided(
                    self.sizes(buffer.sizes), self.sizes(buffer.strides), start
                )
            case Free(name):
                del tensors[name]
            case RunKernel():
                self._kernel(step)
            case CallExtern():
                self._extern(step)

    def _kernel(self, step: RunKernel) -> None:
        failed = self._interpreted(step) if self.stepper.functions is None else self._compiled(step)
        if failed & 1:
            raise IndexError("index out of range")
        if failed:
            raise ZeroDivisionError("integer division by zero")

    def _interpreted(self, step: RunKernel) -> int:
        kernel = self.stepper.kernels[step.kernel]
        names = [parameter.name for parameter in kernel.parameters]
        count = len(step.buffers)
        memory = {
            name: _flat(self.tensors[buffer]) for name, buffer in zip(names, step.buffers, strict=False)
        }
        sizes = {Symbol(n): self.size(v) for n, v in zip(names[count:], step.sizes, strict=False)}
        floats = {n: self.floats[f] for n, f in zip(names[count + len(sizes) :], step.floats, strict=True)}
        return 0 if interpret(kernel, memory, sizes, floats) else 1

    def _compiled(self, step: RunKernel) -> int:
        assert self.stepper.functions is not None
        words = [self.tensors[name].data_ptr() for name in step.buffers]
        words += [self.size(value) for value in step.sizes]
        words += [struct.unpack("q", struct.pack("d", self.floats[name]))[0] for name in step.floats]
        given = (ctypes.c_int64 * len(words))(*words)
        function = self.stepper.functions[step.kernel]

        def run(share: int, shares: int) -> int:
            return int(function(given, ctypes.c_int64(share), ctypes.c_int64(shares)))

        threads = self.stepper.threads
        if sharing_of(self.stepper.kernels[step.kernel]) is not Sharing.CALLER:
            return run(0, threads)
        shares = threads if run(0, 0) else 1
        return functools.reduce(operator.or_, [run(share, shares) for share in range(shares)])

    def _extern(self, step: CallExtern) -> None:
        args = [self._argument(arg) for arg in step.args]
        result = step.op(*args, **{name: self._argument(arg) for name, arg in step.kwargs})
        listed = [result] if isinstance(result, torch.Tensor) else list(result)
        for buffer, tensor in zip(step.results, listed, strict=True):
            if buffer is not None:
                assert list(tensor.shape) == self.sizes(buffer.sizes), (step.op, tensor.shape, buffer)
                assert list(tensor.stride()) == self.sizes(buffer.strides), (step.op, tensor.stride(), buffer)
                self.tensors[buffer.name] = tensor

    def _argument(self, arg: Argument) -> Any:
        match arg:
            case BufferRef(name):
                return self.tensors[name]
            case FloatRef(name):
                return self.floats[name]
            case Expr():
                return self.size(arg)
            case tuple():
                return [self._argument(item) for item in arg]
        return arg

    def output(self, output: Output) -> Any:
        match output:
            case BufferRef(name):
                return self.tensors[name]
            case FloatRef(name):
                return self.floats[name]
            case None:
                return None
        return self.size(output)


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """The memory that a strided tensor spans, from its first element."""
    span = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.as_strided((span if tensor.numel() else 0,), (1,), tensor.storage_offset())
