"""A program as C++ text: the entry that the runtime calls, one step of the program after the other.

For a GPU it is the same text on the CPU's side, except that memory is the GPU's and kernels are launched there. What
the program computes on the CPU besides is called and allocated as on a CPU.
"""

from __future__ import annotations

from collections import Counter
from typing import assert_never

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import Expr, IntLike
from inductor_codegen.codegen.wrapper.calls import CallWriter
from inductor_codegen.codegen.wrapper.integers import integer, symbol_name
from inductor_codegen.codegen.wrapper.kernel_calls import CPU, KernelCalls, kernel_calls
from inductor_codegen.codegen.wrapper.memory import MemoryWriter
from inductor_codegen.codegen.wrapper.preamble import (
    BASE_FUNCTIONS,
    DISPATCHER_HELPERS,
    ENTRY,
    HELPERS,
    STEPS_HEAD,
    TYPES,
    WATCHING,
    CFunction,
    binding,
    declarations,
)
from inductor_codegen.codegen.wrapper.routes.large_products import (
    HOST_FUNCTIONS,
    PRODUCT_FUNCTIONS,
    PRODUCT_HELPERS,
)
from inductor_codegen.codegen.wrapper.text import Text
from inductor_codegen.ir.program import (
    Allocate,
    Buffer,
    BufferRef,
    CallExtern,
    FloatInput,
    FloatRef,
    Free,
    Output,
    Program,
    ProgramInput,
    Reuse,
    RunKernel,
    Step,
    SymbolInput,
    UnusedInput,
    View,
    defined_by,
)
from inductor_codegen.runtime import ENTRY_ABI, OperatorCall, device_numbers, scalar_type

_SMALL_WORK = 1 << 15  # elements; below it other threads gain nothing from the GIL's release


@dataclass(frozen=True, slots=True)
class EntrySource:
    """The entry's C++ text, and what the runtime must know of it (see ``runtime.GraphRecord``)."""

    text: str
    input_kinds: str
    output_kinds: str
    operators: tuple[OperatorCall, ...]
    release_gil: bool


def write_entry(program: Program, device: torch.device = CPU) -> EntrySource:
    """The native entry of a program for ``device``; a GPU's may also run kernels on the CPU."""
    text = Text()
    memory = MemoryWriter(program, text, device)
    calls = CallWriter(text, memory)
    kernels = kernel_calls(program, text, memory, device)
    _numbers(program, text)
    _check_inputs(program, text)
    memory.open_inputs(_read_by_kernels(program) | {given for _, given in program.numbers})
    _numbers_of_tensors(program, text, memory)
    memory.open_scratch()
    kernels.open()
    text.end_step()
    for step in program.steps:
        _step(step, memory, calls, kernels)
        text.end_step()
    _outputs(program.outputs, text, memory)
    return EntrySource(
        _assemble(text, memory, calls, kernels, device),
        "".join(_input_kind(item) for item in program.inputs),
        "".join(_output_kind(item) for item in program.outputs),
        tuple(calls.operators),
        _is_worth_releasing(program),
    )


def _numbers(program: Program, text: Text) -> None:
    position = 0
    for item in program.inputs:
        match item:
            case SymbolInput(symbol):
                text.line(f"const int64_t {symbol_name(symbol)} = numbers[{position}];")
                position += 1
            case FloatInput(name):
                text.line(f"const double f_{name} = fx_float(numbers[{position}]);")
                position += 1


def _numbers_of_tensors(program: Program, text: Text, memory: MemoryWriter) -> None:
    for name, given in program.numbers:
        kind = "float" if memory.buffers[given].dtype == torch.float32 else "double"
        text.line(f"const double f_{name} = *(const {kind}*){memory.pointer(given)};")


def _check_inputs(program: Program, text: Text) -> None:
    tensors = [item for item in program.inputs if isinstance(item, Buffer)]
    if not tensors:
        return
    values: list[IntLike] = []
    for item in tensors:
        values += [scalar_type(item.dtype), *device_numbers(item.device)]
        values += [len(item.sizes), *item.sizes, *item.strides]
    text.line(f"TRY(fx_check_inputs(in, {text.table(values)}, {len(tensors)}));")


def _read_by_kernels(program: Program) -> frozenset[str]:
    """Buffers whose data pointers kernels get, and what those are views of."""
    found = {name for step in program.steps if isinstance(step, RunKernel) for name in step.buffers}
    for step in reversed(program.steps):
        if isinstance(step, View | Reuse) and step.buffer.name in found:
            found.add(step.of)
    return frozenset(found)


def _step(step: Step, memory: MemoryWriter, calls: CallWriter, kernels: KernelCalls) -> None:
    match step:
        case Allocate(buffer):
            memory.allocate(buffer)
        case Reuse(buffer, of):
            memory.reuse(buffer, of)
        case View(buffer, of, offset):
            memory.view(buffer, of, offset)
        case Free(name):
            memory.free(name)
        case RunKernel():
            kernels.write(step)
        case CallExtern():
            calls.write(step)
        case _:
            assert_never(step)


def _outputs(outputs: tuple[Output, ...], text: Text, memory: MemoryWriter) -> None:
    numbers = 0
    tensors = 0
    remaining = Counter([item.name for item in outputs if isinstance(item, BufferRef)])
    for name in remaining:
        memory.handle(name)  # a view's before its owner's handle is given away
    text.end_step()
    for item in outputs:
        match item:
            case BufferRef(name):
                remaining[name] -= 1
                memory.give_out(name, f"out[{tensors}]", last=not remaining[name])
                tensors += 1
            case None:
                continue
            case FloatRef(name):
                text.line(f"out_numbers[{numbers}] = fx_bits(f_{name});")
                numbers += 1
            case int() | Expr():
                text.line(f"out_numbers[{numbers}] = {integer(item)};")
                numbers += 1
            case _:
                assert_never(item)
        text.end_step()


def _assemble(
    text: Text, memory: MemoryWriter, calls: CallWriter, kernels: KernelCalls, device: torch.device
) -> str:
    if calls.has_large_products:
        for name, types in PRODUCT_FUNCTIONS.items():
            calls.functions.setdefault(name, CFunction(name, types))
    functions = [
        *(CFunction(name, types) for name, types in (*BASE_FUNCTIONS.items(), *kernels.functions.items())),
        *calls.functions.values(),
    ]
    pointers, body = max(1, memory.pointer_count), text.body()
    return "".join(
        (
            TYPES,
            f"#define FX_DEVICE {', '.join(map(str, device_numbers(device)))}\n",
            kernels.types,
            declarations(functions),
            HELPERS,
            WATCHING,
            DISPATCHER_HELPERS if calls.uses_dispatcher else "",
            PRODUCT_HELPERS if calls.has_large_products else "",
            kernels.declarations(),
            text.tables(),
            STEPS_HEAD.format(handles=max(1, memory.handle_count), pointers=pointers),
            body,
            ENTRY.format(handles=max(1, memory.handle_count)),
            binding(functions, ENTRY_ABI, HOST_FUNCTIONS if calls.has_large_products else ()),
        )
    )


def _input_kind(item: ProgramInput) -> str:
    match item:
        case Buffer():
            return "t"
        case SymbolInput():
            return "i"
        case FloatInput():
            return "f"
        case UnusedInput():
            return "u"
        case _:
            assert_never(item)


def _output_kind(item: Output) -> str:
    match item:
        case BufferRef():
            return "t"
        case FloatRef():
            return "f"
        case None:
            return "n"
    return "i"


def _is_worth_releasing(program: Program) -> bool:
    """Whether a call computes so much, as far as is known, that other Python threads should run meanwhile."""
    work = 0
    for step in program.steps:
        for buffer in defined_by(step):
            elements: IntLike = 1
            for size in buffer.sizes:
                elements = elements * size
            if isinstance(elements, Expr):
                return True
            work += elements
            if work > _SMALL_WORK:
                return True
    return False
