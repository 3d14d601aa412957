"""Arguments of torch's generated C functions, derived from an operator's schema.

Each operator that torch exports as ``aoti_torch_cpu_<name>`` takes its schema's arguments in order, in C types: a
tensor is a handle, an optional is a pointer (null for None), a list is a pointer and a length, a bool is an int32_t,
and each result is a pointer to where it goes.
"""

from __future__ import annotations

import re
from dataclasses import field
from functools import cache
from typing import Any, Protocol

import torch
from torch._ops import OpOverload

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import Expr
from inductor_codegen.codegen.wrapper.integers import integer
from inductor_codegen.ir.program import Argument, BufferRef, CallExtern, FloatRef
from inductor_codegen.runtime.binding import device_numbers, scalar_type

_EXACT_IN_DOUBLE = 1 << 53
_PLAIN = re.compile(r"[ !#->@-\[\]-~]*")
"""What stands for itself in a string literal: printable, and none of the three characters that C reads otherwise."""


class Unspeakable(Exception):
    """An argument that cannot be passed through the C interface; the operator is called through Python."""


class Values(Protocol):
    """The run-time values of a program, as C++ expressions."""

    def handle(self, name: str) -> str:
        """A handle of the buffer."""

    def number(self, name: str) -> str:
        """A double that is the float input ``name``."""


@dataclass(slots=True)
class CArguments:
    """C++ text of one call: ``setup`` statements, ``values`` in order, and their C ``types``."""

    setup: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    types: list[str] = field(default_factory=list)

    def add(self, c_type: str, value: str) -> None:
        """One more argument."""
        self.types.append(c_type)
        self.values.append(value)

    def local(self, declaration: str, value: str) -> str:
        """A new local variable; ``declaration`` has ``$`` for its name."""
        name = f"a{len(self.setup)}"
        self.setup.append(f"{declaration.replace('$', name)} = {value};")
        return name


@dataclass(frozen=True, slots=True)
class Declared:
    """An argument as a schema declares it: ``type`` says ``Tensor`` or ``int[]``, ``real_type`` also ``ScalarType``."""

    name: str
    type: str
    real_type: str
    kwarg_only: bool
    default: Any


@cache
def declared_by(op: OpOverload) -> tuple[Declared, ...]:
    """The arguments of an operator, which torch makes anew from its schema each time that it is asked."""
    return tuple(
        Declared(one.name, str(one.type), str(one.real_type), one.kwarg_only, one.default_value)
        for one in op._schema.arguments
    )


def bound_arguments(call: CallExtern) -> list[tuple[Declared, Argument]]:
    """The schema's arguments with their values, defaults filled in."""
    given = dict(call.kwargs)
    pairs: list[tuple[Declared, Argument]] = []
    for position, declared in enumerate(declared_by(call.op)):
        if position < len(call.args) and not declared.kwarg_only:
            pairs.append((declared, call.args[position]))
        else:
            pairs.append((declared, given.get(declared.name, declared.default)))
    return pairs


def c_arguments(call: CallExtern, values: Values, exact_scalars: bool) -> CArguments:
    """The call's arguments in C. Unspeakable if one has no C form.

    ``exact_scalars`` allows integers where the schema says Scalar; the C interface makes floats of them, which changes
    the result's type if all tensors are integers.
    """
    made = CArguments()
    for declared, value in bound_arguments(call):
        _argument(made, declared.real_type, value, values, exact_scalars)
    return made


def _argument(made: CArguments, kind: str, value: Argument, values: Values, exact_scalars: bool) -> None:
    optional = kind.endswith("?") or kind.startswith("Optional[")
    if kind.startswith("Optional["):
        kind = kind[len("Optional[") : -1]
    kind = kind.removesuffix("?")
    if kind.startswith("List["):
        _list(made, kind[len("List[") : -1], value, values, optional)
    elif kind == "Device" or kind == "device":
        _device(made, value, optional)
    else:
        _single(made, kind, value, values, optional, exact_scalars)


def _single(
    made: CArguments, kind: str, value: Argument, values: Values, optional: bool, exact_scalars: bool
) -> None:
    c_type = _C_TYPES.get(kind)
    if c_type is None:
        raise Unspeakable(f"no C form for {kind}")
    if not optional:
        made.add(c_type, _text(kind, value, values, exact_scalars))
    elif value is None:
        made.add(f"{c_type}*", "nullptr")
    else:
        held = made.local(f"{c_type} $", _text(kind, value, values, exact_scalars))
        made.add(f"{c_type}*", f"&{held}")


def _text(kind: str, value: Argument, values: Values, exact_scalars: bool) -> str:
    match kind, value:
        case "Tensor", BufferRef(name):
            return values.handle(name)
        case (("float" | "number" | "Scalar"), FloatRef(name)):
            return values.number(name)
        case "bool", bool():
            return str(int(value))
        case (("int" | "SymInt"), int() | Expr()) if not isinstance(value, bool):
            return integer(value)
        case (("float" | "number" | "Scalar"), float()):
            return double(value)
        case "float", int() | Expr():
            return f"(double){integer(value)}"
        case (("number" | "Scalar"), int()) if exact_scalars and abs(value) < _EXACT_IN_DOUBLE:
            return double(float(value))
        case "str", str():
            return quoted(value)
        case _, torch.dtype():
            return str(scalar_type(value))
        case _, torch.layout() if value is torch.strided:
            return "0"
        case _, torch.memory_format() if value in MEMORY_FORMATS:
            return str(MEMORY_FORMATS[value])
    raise Unspeakable(f"no C form for {value!r} as {kind}")


def _list(made: CArguments, kind: str, value: Argument, values: Values, optional: bool) -> None:
    if kind.startswith("Optional["):
        _optional_tensors(made, kind, value, values, optional)
        return
    c_type = {"Tensor": "H", "int": "int64_t", "SymInt": "int64_t", "float": "double", "bool": "int32_t"}.get(
        kind
    )
    if c_type is None or not (isinstance(value, (tuple, list)) or (optional and value is None)):
        raise Unspeakable(f"no C form for {value!r} as a list of {kind}")
    pointer = f"const {c_type}*"
    if value is None:
        made.add(f"{pointer}*", "nullptr")
        made.add("int64_t", "0")
        return
    texts = [_text(kind, item, values, False) for item in value]
    held = made.local(f"const {c_type} $[]", f"{{{', '.join(texts)}}}") if texts else "nullptr"
    if optional:
        made.add(f"{pointer}*", f"&{made.local(f'{pointer} $', held)}")
    else:
        made.add(pointer, held)
    made.add("int64_t", str(len(texts)))


def _optional_tensors(made: CArguments, kind: str, value: Argument, values: Values, optional: bool) -> None:
    if kind != "Optional[Tensor]" or optional or not isinstance(value, (tuple, list)):
        raise Unspeakable(f"no C form for a list of {kind}")
    cells = []
    for item in value:
        cells.append(
            "nullptr" if item is None else f"&{made.local('H $', _text('Tensor', item, values, False))}"
        )
    held = made.local("const H* $[]", f"{{{', '.join(cells)}}}") if cells else "nullptr"
    made.add("const H**", held)
    made.add("int64_t", str(len(cells)))


def _device(made: CArguments, value: Argument, optional: bool) -> None:
    if value is None and optional:
        made.add("int32_t*", "nullptr")
        made.add("int32_t", "0")
    elif isinstance(value, torch.device) and value.type in ("cpu", "cuda"):
        number, index = map(str, device_numbers(value))
        made.add(
            "int32_t*" if optional else "int32_t",
            f"&{made.local('int32_t $', number)}" if optional else number,
        )
        made.add("int32_t", index)
    else:
        raise Unspeakable(f"no C form for the device {value}")


def double(value: float) -> str:
    """A double literal that is exactly ``value``."""
    if value != value:
        return '__builtin_nan("")'
    if value in (float("inf"), float("-inf")):
        return "__builtin_inf()" if value > 0 else "-__builtin_inf()"
    return value.hex()


def quoted(text: str) -> str:
    """A C string literal of any text."""
    return (
        f'"{text}"'
        if _PLAIN.fullmatch(text)
        else '"' + "".join(f"\\{byte:03o}" for byte in text.encode()) + '"'
    )


_C_TYPES = {
    "Tensor": "H",
    "int": "int64_t",
    "SymInt": "int64_t",
    "float": "double",
    "number": "double",
    "Scalar": "double",
    "bool": "int32_t",
    "str": "const char*",
    "ScalarType": "int32_t",
    "Layout": "int32_t",
    "MemoryFormat": "int32_t",
    "Generator": "H",
}
MEMORY_FORMATS: dict[torch.memory_format, int] = {
    torch.contiguous_format: 0,
    torch.preserve_format: 1,
    torch.channels_last: 2,
    torch.channels_last_3d: 3,
}
