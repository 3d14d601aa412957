"""What a program does to its inputs beside giving them other content: their forms, and their versions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from aot_autograd.plan import FormOfInput
from aot_autograd.recording.storage import Storage
from aot_autograd.views.aliasing import replay_of
from fx_interface.errors import UnsupportedProgramError


def forms_of(storages: Mapping[int, Storage], written: Collection[int]) -> dict[int, FormOfInput]:
    """What is to be done to the inputs that take another form, by their numbers; AOT112 where the gradient of one would
    not follow."""
    found: dict[int, FormOfInput] = {}
    for index, storage in storages.items():
        form = storage.form
        if form is None:
            continue
        if form.tensor.requires_grad and (index in written or any(step.no_grad for step in form.steps)):
            raise UnsupportedProgramError(
                "AOT112",
                "an input that requires grad changes its shape in place, and its content or without grad",
            )
        found[index] = FormOfInput(index, tuple(replay_of(step) for step in form.steps))
    return found


def versions_of(
    passed: Mapping[int, Any], forms: Mapping[int, FormOfInput], written: Collection[int]
) -> dict[int, int]:
    """By how much the versions of inputs grow, by their numbers: those that are ``written`` to, and others where that
    is not 0. What gives an input its form counts by itself."""
    found: dict[int, int] = {}
    for index, tensor in passed.items():
        if tensor.is_inference():
            count = 1
        else:
            count = tensor._version - (len(forms[index].steps) if index in forms else 0)
        if index in written or (count and not tensor.is_inference()):
            found[index] = count
    return found
