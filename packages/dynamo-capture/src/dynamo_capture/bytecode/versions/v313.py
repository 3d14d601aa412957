"""CPython 3.13: a call's NULL lies over the callable, CALL_KW, TO_BOOL before conditional jumps, two locals in one
opcode."""

from __future__ import annotations

from dynamo_capture.bytecode.versions.rules import Rules
from dynamo_capture.bytecode.versions.v312 import RULES as V312

RULES = Rules(
    version=(3, 13),
    name_flags=V312.name_flags,
    forward=V312.forward,
    backward=V312.backward,
    inverted=V312.inverted,
    pairs=frozenset({"LOAD_FAST_LOAD_FAST", "STORE_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST"}),
    null_before_callable=False,
    has_call_kw=True,
    has_to_bool=True,
    has_load_closure=False,
    has_function_attributes=True,
    closing_for=("END_FOR", "POP_TOP"),
    compare_shift=5,
    compare_bool=16,
    compare_masks=V312.compare_masks,
)
