"""CPython 3.12: conditional jumps go forward only, methods load through LOAD_ATTR, RETURN_CONST, inlined
comprehensions."""

from __future__ import annotations

from dynamo_capture.bytecode.versions.rules import Rules

RULES = Rules(
    version=(3, 12),
    name_flags={"LOAD_GLOBAL": 1, "LOAD_ATTR": 1, "LOAD_SUPER_ATTR": 2},
    forward={
        "JUMP": "JUMP_FORWARD",
        "JUMP_FORWARD": "JUMP_FORWARD",
        "JUMP_BACKWARD": "JUMP_FORWARD",
        "JUMP_BACKWARD_NO_INTERRUPT": "JUMP_FORWARD",
        "FOR_ITER": "FOR_ITER",
        "SEND": "SEND",
        "POP_JUMP_IF_TRUE": "POP_JUMP_IF_TRUE",
        "POP_JUMP_IF_FALSE": "POP_JUMP_IF_FALSE",
        "POP_JUMP_IF_NONE": "POP_JUMP_IF_NONE",
        "POP_JUMP_IF_NOT_NONE": "POP_JUMP_IF_NOT_NONE",
    },
    backward={
        "JUMP": "JUMP_BACKWARD",
        "JUMP_FORWARD": "JUMP_BACKWARD",
        "JUMP_BACKWARD": "JUMP_BACKWARD",
        "JUMP_BACKWARD_NO_INTERRUPT": "JUMP_BACKWARD_NO_INTERRUPT",
    },
    inverted={
        "POP_JUMP_IF_TRUE": "POP_JUMP_IF_FALSE",
        "POP_JUMP_IF_FALSE": "POP_JUMP_IF_TRUE",
        "POP_JUMP_IF_NONE": "POP_JUMP_IF_NOT_NONE",
        "POP_JUMP_IF_NOT_NONE": "POP_JUMP_IF_NONE",
    },
    generator_entry_depth=1,
    closing_for=("END_FOR",),
    compare_shift=4,
    compare_masks={"<": 2, "<=": 10, "==": 8, "!=": 7, ">": 4, ">=": 12},
)
