"""Which CPython version is running, and its opcodes by family.

Families of opcodes (has a constant, a name, a local, a jump ...) come from ``dis`` and need no file of ours. What the
standard library does not say is in ``v311``, ``v312`` and ``v313``, each a table of ``Rules``.
"""

from __future__ import annotations

import dis
import opcode
import sys
from collections.abc import Mapping

from dynamo_capture.bytecode.versions.rules import Rules


def current_rules() -> Rules:
    """The rules of the running interpreter; NotImplementedError on a version that is not supported."""
    match sys.version_info[:2]:
        case (3, 11):
            from dynamo_capture.bytecode.versions.v311 import RULES
        case (3, 12):
            from dynamo_capture.bytecode.versions.v312 import RULES
        case (3, 13):
            from dynamo_capture.bytecode.versions.v313 import RULES
        case other:
            raise NotImplementedError(
                f"CPython {other[0]}.{other[1]} is not supported; 3.11, 3.12 and 3.13 are"
            )
    return RULES


RULES = current_rules()


def _cache_sizes() -> dict[str, int]:
    table = opcode._inline_cache_entries  # type: ignore[attr-defined]
    if isinstance(table, dict):
        return dict(table)
    return {dis.opname[number]: count for number, count in enumerate(table) if count}


CACHE_SIZES: Mapping[str, int] = _cache_sizes()
"""Inline cache entries (code units) that follow an opcode."""

CONSTANT = frozenset(dis.opname[number] for number in dis.hasconst)
NAME = frozenset(dis.opname[number] for number in dis.hasname)
LOCAL = frozenset(dis.opname[number] for number in dis.haslocal) - RULES.pairs
FREE = frozenset(dis.opname[number] for number in dis.hasfree)
JUMP = frozenset({*RULES.forward, *RULES.backward})
"""Whatever jumps, by every name that the assembler takes."""
HAS_ARGUMENT = frozenset(
    name
    for name, number in dis.opmap.items()
    if number in getattr(dis, "hasarg", ()) or (not hasattr(dis, "hasarg") and number >= dis.HAVE_ARGUMENT)
)
NO_FALLTHROUGH = frozenset(
    {
        "RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE", "JUMP", "JUMP_FORWARD", "JUMP_BACKWARD",
        "JUMP_BACKWARD_NO_INTERRUPT", "INTERPRETER_EXIT",
    }
)  # fmt: skip
"""Instructions after which control never reaches the next one."""
