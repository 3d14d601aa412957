"""Running a function and writing down what it did."""

from __future__ import annotations

import random
import re
import traceback
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch

from fx_interface.conformance.outcomes.describing import Describer, memories, tensors_in
from fx_interface.conformance.outcomes.forms import NOTHING_RAISED, Form, LeafForm, ObjectForm, Outcome
from fx_interface.conformance.outcomes.output import printed_and_logged
from fx_interface.torch_internals.torch_state import FACTS

_ADDRESS: Final = re.compile("at 0x[0-9a-f]{6,}")


def observe(
    function: Callable[..., Any],
    *args: Any,
    backward: bool = True,
    also: Mapping[str, Any] | None = None,
    lines_of: str | None = None,
) -> Outcome:
    """Run ``function(*args)`` and describe what it did.

    ``backward``: differentiate the sum of the results that have a history. ``also``: further objects that the
    call may change (a module, a log), described afterwards by these names. ``lines_of``: a file whose lines in the
    traceback of an exception are part of the outcome.
    """
    given = memories((args, also))
    seed_everywhere(0)
    random.seed(0)
    result, error = None, None
    with printed_and_logged() as output, warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            result = function(*args)
        except Exception as raised:
            error = raised
    drawn = tuple(torch.get_rng_state().view(torch.int64).tolist()), random.getstate()
    modes = _modes()
    described = Describer(given)
    seen: dict[str, object] = {"result": result, "arguments": args, **(also or {})}
    before = {name: described.form(value) for name, value in seen.items()}
    forms: dict[str, Form] = {**before, "exception": _exception(error, lines_of)}
    forms["output"] = LeafForm(output.getvalue())
    texts = [(w.category.__name__, str(w.message)) for w in heard]
    forms["warnings"] = LeafForm(repr(list(dict.fromkeys(texts))))
    forms["all warnings"] = LeafForm(repr(texts))
    forms["random state"] = LeafForm(str(hash(drawn)))
    forms["modes"] = LeafForm(repr(modes))
    if error is not None:
        traceback.clear_frames(error.__traceback__)
        error = None  # it leads to this frame, and what it holds would die whenever cycles are collected next
    if backward:
        forms["backward"] = NOTHING_RAISED
        wanted = _differentiable(result)
        if wanted:
            forms["backward"] = _exception(_differentiate(wanted), None)
            after = Describer(given)
            forms.update({f"{name} after backward": after.form(value) for name, value in seen.items()})
    return Outcome(forms)


def seed_everywhere(seed: int) -> None:
    """Seed torch's generators, as ``torch.manual_seed``, which notes a stack of calls for devices not yet in use."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)


def _differentiable(result: Any) -> list[torch.Tensor]:
    with torch._C.DisableTorchFunctionSubclass():
        return [t for t in tensors_in(result) if t.requires_grad and _has_history(t)]


def _has_history(tensor: torch.Tensor) -> bool:
    """Whether a gradient can be asked for: not of a view that ``split`` gave and whose base was written to since."""
    try:
        return tensor.grad_fn is not None
    except RuntimeError:
        return False


def _differentiate(wanted: list[torch.Tensor]) -> BaseException | None:
    with torch._C.DisableTorchFunctionSubclass():
        try:
            sum((t.abs() if t.is_complex() else t).sum() for t in wanted).backward(retain_graph=True)  # type: ignore[union-attr]
        except Exception as raised:
            return raised
    return None


def _modes() -> dict[str, object]:
    """Torch's state; of modes that are on how many, as each run may leave one of its own."""
    return {
        **{fact.name: fact.read() for fact in FACTS if fact.name != "torch_function_modes"},
        "default device": str(torch.get_default_device()),
        "function modes": torch._C._len_torch_function_stack(),
        "dispatch modes": torch._C._len_torch_dispatch_stack(),
    }


def _exception(error: BaseException | None, lines_of: str | None) -> Form:
    if error is None:
        return NOTHING_RAISED
    if isinstance(error, RecursionError):  # where the limit is met depends on what stands below
        return LeafForm(type(error).__qualname__)
    lines = [
        f"{entry.name}:{entry.lineno}"
        for entry in traceback.extract_tb(error.__traceback__)
        if entry.filename == lines_of
    ]
    parts: dict[str, Form] = {
        "text": LeafForm(_ADDRESS.sub("at 0x", str(error))),
        "lines": LeafForm(repr(lines) if lines_of else ""),
        "traceback": LeafForm(str(error.__traceback__ is not None)),
    }
    if error.__cause__ is not None:
        parts["cause"] = _exception(error.__cause__, lines_of)
    if error.__context__ is not None:
        parts["context"] = _exception(error.__context__, lines_of)
    return ObjectForm(type(error).__qualname__, None, parts)
