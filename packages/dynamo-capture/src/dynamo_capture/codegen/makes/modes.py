"""Context managers of torch that are made, as they were before or after they were entered."""

from __future__ import annotations

import torch

from dynamo_capture.codegen.reconstruct import Reconstruction, makes
from dynamo_capture.foundation.part_options import options_of
from dynamo_capture.runtime import replacement_calls
from dynamo_capture.semantics.modes.contexts import NullContext
from dynamo_capture.semantics.modes.modes import (
    Autocast,
    DeviceBlock,
    GradMode,
    InferenceMode,
    SetGradEnabled,
)
from dynamo_capture.semantics.modes.patched_options import PartBlock
from dynamo_capture.semantics.tensor_subclasses.asking_functions import Disabling
from dynamo_capture.values import Const


@makes(GradMode)
def grad_mode(to: Reconstruction, value: GradMode) -> None:
    """Gradient-mode managers, entered or not."""
    if not value.previous:
        if value.cls is torch.set_grad_enabled:
            to.call(replacement_calls.grad_mode_to_decorate_with, lambda: to.push(Const(value.enabled)))
        else:
            to.call(value.cls, lambda: None, 0)
        return
    constants = (value.cls, value.enabled, value.previous[-1][0])
    to.call(replacement_calls.entered_grad_mode, lambda: to.push_all([Const(c) for c in constants]), 3)


@makes(SetGradEnabled)
def set_grad_enabled(to: Reconstruction, value: SetGradEnabled) -> None:
    """``set_grad_enabled``, which has taken effect."""
    inner = value.inner
    constants = (inner.cls, inner.enabled, inner.previous[0][0])
    to.call(replacement_calls.entered_grad_mode, lambda: to.push_all([Const(c) for c in constants]), 3)


@makes(Autocast)
def autocast(to: Reconstruction, value: Autocast) -> None:
    """``torch.autocast``, not entered."""
    settings = value.settings()
    to.call(torch.autocast, lambda: to.push_all([Const(c) for c in settings]), len(settings))


@makes(InferenceMode)
def inference_mode(to: Reconstruction, value: InferenceMode) -> None:
    """``torch.inference_mode``, not entered."""
    to.call(torch.inference_mode, lambda: to.push(Const(value.mode)))


@makes(DeviceBlock)
def device(to: Reconstruction, value: DeviceBlock) -> None:
    """``torch.device``."""
    to.push(Const(value.device))


@makes(Disabling)
def disabling(to: Reconstruction, value: Disabling) -> None:
    """``DisableTorchFunctionSubclass``, not entered."""
    to.call(value.python_type(), lambda: None, 0)


@makes(PartBlock)
def part(to: Reconstruction, value: PartBlock) -> None:
    """``patch_options``, not entered."""
    changes = Const(tuple(value.changes.items()))
    to.call(options_of, lambda: to.push(changes))


@makes(NullContext)
def null_context(to: Reconstruction, value: NullContext) -> None:
    """``contextlib.nullcontext``."""
    to.call(value.python_type(), lambda: to.push(value.result))
