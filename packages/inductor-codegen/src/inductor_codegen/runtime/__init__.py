"""Running compiled graphs: the native callable, its record, and operators called through Python."""

from inductor_codegen.runtime.binding import (
    ENTRY_ABI,
    TENSOR_SLOT,
    CompiledGraph,
    device_numbers,
    exports,
    scalar_type,
)
from inductor_codegen.runtime.load import SCRATCH_LIMIT, GraphRecord, load
from inductor_codegen.runtime.operator_call import OperatorCall, Slot, SlotKind

__all__ = [
    "ENTRY_ABI",
    "SCRATCH_LIMIT",
    "TENSOR_SLOT",
    "CompiledGraph",
    "GraphRecord",
    "OperatorCall",
    "Slot",
    "SlotKind",
    "device_numbers",
    "exports",
    "load",
    "scalar_type",
]
