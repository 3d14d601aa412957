"""Whether a call of an operator takes random numbers: attention without dropout takes none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._ops import OpOverload

_SHARE = "dropout_p"


def draws(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether ``op(*args, **kwargs)`` may change the state of a generator."""
    if torch.Tag.nondeterministic_seeded not in op.tags:
        return False
    for index, argument in enumerate(op._schema.arguments):
        if argument.name == _SHARE:
            given = args[index] if index < len(args) else kwargs.get(_SHARE, argument.default_value)
            return bool(given != 0)
    return True
