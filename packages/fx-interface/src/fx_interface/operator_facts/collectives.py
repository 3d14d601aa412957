"""Operators that speak to other processes.

Each is run exactly once, where the program calls it in the order of the others, because the other processes take part.
A functional collective returns at once; its result is there when ``wait_tensor`` has been called, which returns the
very tensor that it is given. Until then some read their arguments.
"""

from __future__ import annotations

from typing import Any, Final

from torch._ops import OpOverload, OpOverloadPacket

_NAMESPACES: Final = frozenset({"_c10d_functional", "_c10d_functional_autograd", "c10d", "symm_mem"})
_COPYING: Final = frozenset({"all_reduce", "all_reduce_coalesced", "broadcast"})
"""Those that work on a copy of what they are given."""


def is_collective(op: Any) -> bool:
    """Whether an operator, or a packet of overloads, may speak to other processes."""
    if isinstance(op, OpOverload):
        return op.namespace in _NAMESPACES
    return isinstance(op, OpOverloadPacket) and op._qualified_op_name.partition("::")[0] in _NAMESPACES


def is_wait(op: Any) -> bool:
    """Whether the operator waits for the result of a functional collective."""
    if isinstance(op, OpOverload):
        return op.namespace == "_c10d_functional" and op._opname == "wait_tensor"
    return isinstance(op, OpOverloadPacket) and op._qualified_op_name == "_c10d_functional::wait_tensor"


def reads_later(op: OpOverload) -> bool:
    """Whether the memory of an argument has to stay as it is as long as there is the result."""
    return is_collective(op) and op._opname not in _COPYING
