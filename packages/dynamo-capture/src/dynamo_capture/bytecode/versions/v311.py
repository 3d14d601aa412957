"""CPython 3.11: jumps have a direction, PRECALL before CALL, LOAD_METHOD, no TO_BOOL."""

from __future__ import annotations

from dynamo_capture.bytecode.versions.rules import Rules

_CONDITIONS = ("TRUE", "FALSE", "NONE", "NOT_NONE")

RULES = Rules(
    version=(3, 11),
    name_flags={"LOAD_GLOBAL": 1},
    forward={
        "JUMP": "JUMP_FORWARD",
        "JUMP_FORWARD": "JUMP_FORWARD",
        "JUMP_BACKWARD": "JUMP_FORWARD",
        "JUMP_BACKWARD_NO_INTERRUPT": "JUMP_FORWARD",
        "FOR_ITER": "FOR_ITER",
        "SEND": "SEND",
        "JUMP_IF_TRUE_OR_POP": "JUMP_IF_TRUE_OR_POP",
        "JUMP_IF_FALSE_OR_POP": "JUMP_IF_FALSE_OR_POP",
        **{
            f"POP_JUMP_{direction}IF_{condition}": f"POP_JUMP_FORWARD_IF_{condition}"
            for condition in _CONDITIONS
            for direction in ("", "FORWARD_", "BACKWARD_")
        },
    },
    backward={
        "JUMP": "JUMP_BACKWARD",
        "JUMP_FORWARD": "JUMP_BACKWARD",
        "JUMP_BACKWARD": "JUMP_BACKWARD",
        "JUMP_BACKWARD_NO_INTERRUPT": "JUMP_BACKWARD_NO_INTERRUPT",
        **{
            f"POP_JUMP_{direction}IF_{condition}": f"POP_JUMP_BACKWARD_IF_{condition}"
            for condition in _CONDITIONS
            for direction in ("", "FORWARD_", "BACKWARD_")
        },
    },
    inverted={},
    generator_entry_depth=1,
    has_precall=True,
    has_load_method=True,
)
