"""The forms in which an outcome is kept: tensors, objects and values, as they were at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TensorForm:
    """A tensor at one moment; ``storage`` numbers the memories of an outcome in the order in which they are met.
    ``parts`` are its gradient and its attributes."""

    facts: Mapping[str, object]
    storage: int | None
    content: torch.Tensor
    parts: Mapping[str, Form]


@dataclass(frozen=True, slots=True)
class ObjectForm:
    """An object: its class, the number of its identity, and what it consists of by name."""

    kind: str
    identity: int | None
    parts: Mapping[str, Form]


@dataclass(frozen=True, slots=True)
class LeafForm:
    """A value that is compared as a whole."""

    text: str


Form = TensorForm | ObjectForm | LeafForm
NOTHING_RAISED: Final = LeafForm("none")


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that ``observe`` saw, by the name of what it looked at."""

    forms: Mapping[str, Form]

    @property
    def raised(self) -> bool:
        """Whether the call ended with an exception."""
        return self.forms["exception"] != NOTHING_RAISED

    @property
    def backward_raised(self) -> bool:
        """Whether the gradients of the results could not be had."""
        return self.forms.get("backward", NOTHING_RAISED) != NOTHING_RAISED


def in_words(form: Form | None) -> str:
    """A form as part of a message, not longer than a few lines."""
    match form:
        case None:
            return "nothing"
        case LeafForm():
            return form.text
        case TensorForm():
            return tensor_in_words(form.content)
        case ObjectForm():
            parts = ", ".join(f"{name}={in_words(part)}" for name, part in form.parts.items())
            return f"{form.kind}({parts})"[:300]


def tensor_in_words(tensor: torch.Tensor) -> str:
    """A tensor's content on one line."""
    return " ".join(repr(tensor).split())[:300]
