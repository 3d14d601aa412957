"""Texts about a program in the program's own words: what a value is called inside, its user has never seen.

a call of lock.release on lock .callee.args[0].__dict__['lock']   a call of lock.release on lock
.stack1 is a quantized tensor                                    a value is a quantized tensor
self.__dict__['layer'].__dict__['scale']                         self.layer.scale
<ContextVar name='v' at 0x7fe281285940>                          <ContextVar name='v'>
_VariableFunctionsClass.add                                      torch.add
"""

from __future__ import annotations

import re
from pathlib import Path

from fx_interface.errors import UserLocation

_OWN = str(Path(__file__).parents[2])
"""The folder of this package."""
_PATH = r"(?:\.\w+|\[[^\]]*\])*"
_INSIDE = rf"(?<![\w.)\]])\.(?:callee|stack\d+|0(?!\d)){_PATH}"
"""A place that replacement code has and the program has not, and what is read from there."""
_RULES = (
    (rf"(?<=\w) {_INSIDE}", ""),
    (_INSIDE, "a value"),
    (r"\.__dict__\['([A-Za-z_]\w*)'\]", r".\1"),
    (r" at 0x[0-9a-fA-F]+", ""),
    (r"\bpybind11_\w+\.", ""),
    (r"\b_VariableFunctionsClass\.", "torch."),
    (r"\b_TensorBase\.", "Tensor."),
)
"""Patterns, compiled when a text is first told, which most programs never do."""


def in_users_words(text: str) -> str:
    """``text`` without names, places and addresses that only the translator knows."""
    for pattern, replacement in _RULES:
        text = re.sub(pattern, replacement, text)
    return text


def line_of_user(where: UserLocation | None) -> UserLocation | None:
    """A line that a guard or a break names; None for one of the function by which capture calls an object."""
    return None if where is None or where.filename.startswith(_OWN) else where
