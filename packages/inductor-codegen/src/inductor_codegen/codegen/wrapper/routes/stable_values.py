"""Arguments of operators called by name through torch's dispatcher: each is one 64-bit word.

A tensor is an owned handle, a number its bits, None is zero, any other optional is a heap cell with the word, and a
list is a handle made item by item. The call consumes what it is given. There is no word for a Scalar, a device or a
generator.
"""

from __future__ import annotations

import torch

from fx_interface.symbols import Expr
from inductor_codegen.codegen.wrapper.arguments import (
    MEMORY_FORMATS,
    Unspeakable,
    Values,
    bound_arguments,
    double,
)
from inductor_codegen.codegen.wrapper.integers import integer
from inductor_codegen.ir.program import Argument, BufferRef, CallExtern, FloatRef
from inductor_codegen.runtime.binding import scalar_type


def stable_values(call: CallExtern, values: Values) -> list[str]:
    """The words of a call's arguments, as C++ expressions. Unspeakable if one has none."""
    return [_word(declared.real_type, value, values) for declared, value in bound_arguments(call)]


def _word(kind: str, value: Argument, values: Values) -> str:
    if kind.startswith("Optional["):
        return "0" if value is None else f"fx_some({_word(kind[9:-1], value, values)})"
    if kind.startswith("List["):
        return _list(kind[5:-1], value, values)
    match kind, value:
        case "Tensor", BufferRef(name):
            return f"fx_own({values.handle(name)})"
        case "bool", bool():
            return str(int(value))
        case (("int" | "SymInt"), int() | Expr()) if not isinstance(value, bool):
            return f"(uint64_t){integer(value)}"
        case "float", FloatRef(name):
            return f"fx_bits({values.number(name)})"
        case "float", float() | int() if not isinstance(value, bool):
            return f"fx_bits({double(float(value))})"
        case "float", Expr():
            return f"fx_bits((double){integer(value)})"
        case "ScalarType", torch.dtype():
            return str(scalar_type(value))
        case "Layout", torch.layout() if value is torch.strided:
            return "0"
        case "MemoryFormat", torch.memory_format() if value in MEMORY_FORMATS:
            return str(MEMORY_FORMATS[value])
    raise Unspeakable(f"no stable form for {value!r} as {kind}")


def _list(kind: str, value: Argument, values: Values) -> str:
    if not isinstance(value, (tuple, list)):
        raise Unspeakable(f"no stable form for {value!r} as a list of {kind}")
    words = ", ".join(_word(kind, item, values) for item in value)
    return f"fx_list({len(value)}{', ' if words else ''}{words})"
