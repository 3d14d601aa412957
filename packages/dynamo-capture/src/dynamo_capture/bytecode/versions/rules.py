"""What a CPython version must say about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Rules:
    """The differences of one version, as data.

    ``name_flags``: opcode -> how many low bits of its argument are flags rather than part of a name's index.
    ``pairs``: opcodes whose argument packs two locals. ``backward``: a jump -> its backward form (itself where one
    opcode serves), ``forward`` the other way round; a jump in neither table cannot be turned. ``inverted``:
    conditional jump -> the one that jumps in the other cases. ``generator_entry_depth``: stack depth that
    ``dis.stack_effect`` leaves out before a generator's first instruction.
    """

    version: tuple[int, int]
    name_flags: Mapping[str, int]
    forward: Mapping[str, str]
    backward: Mapping[str, str]
    inverted: Mapping[str, str]
    pairs: frozenset[str] = frozenset()
    generator_entry_depth: int = 0
    null_before_callable: bool = True
    """Whether a call's NULL lies under the callable (3.11, 3.12) or over it (3.13)."""
    has_precall: bool = False
    has_call_kw: bool = False
    has_load_method: bool = False
    has_to_bool: bool = False
    has_load_closure: bool = True
    has_function_attributes: bool = False
    closing_for: tuple[str, ...] = ()
    """What stands where an exhausted FOR_ITER jumps to."""
    compare_shift: int = 0
    compare_bool: int = 0
    """Bit of COMPARE_OP's argument that asks for an exact bool."""
    compare_masks: Mapping[str, int] = field(default_factory=dict)
    """Bits below ``compare_shift`` that tell the interpreter which results of a comparison count as true."""
