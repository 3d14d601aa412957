"""Existing objects that set a mode, or watch, in a ``with`` block, as values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.part_options import patch_options
from dynamo_capture.semantics.modes.contexts import RecordFunction
from dynamo_capture.semantics.modes.modes import Autocast, InferenceMode
from dynamo_capture.semantics.modes.patched_options import PartBlock
from dynamo_capture.values import (
    Value,
)
from dynamo_capture.variable_builder.objects import wraps
from fx_interface.source import AttrSource, Source

if TYPE_CHECKING:
    from dynamo_capture.values.base import Context


def _settings(tx: Context, real: Any, source: Source, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Attributes of a context manager, guarded; an object that was never initialized has none."""
    if not all(hasattr(real, name) for name in names):
        raise GraphBreak("CAP210", f"{source} is a {type(real).__name__} that was not initialized")
    for name in names:
        tx.guards.equals(AttrSource(source, name), getattr(real, name))
    return tuple(getattr(real, name) for name in names)


@wraps(torch.autocast)
def _autocast(tx: Context, real: Any, source: Source) -> Value:
    found = tx.wrapping.seen(real, source)
    if found is not None:
        return found
    tx.guards.type_is(source, torch.autocast)
    made = Autocast(_settings(tx, real, source, ("device", "fast_dtype", "_enabled", "_cache_enabled")))
    made.source = source
    return tx.wrapping.remember(real, made)


@wraps(patch_options)
def _part(tx: Context, real: Any, source: Source) -> Value:
    found = tx.wrapping.seen(real, source)
    if found is not None:
        return found
    tx.guards.type_is(source, patch_options)
    tx.guards.equals(AttrSource(source, "changes"), real.changes)
    made = PartBlock(real.changes)
    made.source = source
    return tx.wrapping.remember(real, made)


@wraps(torch.inference_mode)
def _inference_mode(tx: Context, real: Any, source: Source) -> Value:
    found = tx.wrapping.seen(real, source)
    if found is not None:
        return found
    tx.guards.type_is(source, torch.inference_mode)
    (mode,) = _settings(tx, real, source, ("mode",))
    made = InferenceMode(mode)
    made.source = source
    return tx.wrapping.remember(real, made)


@wraps(torch.autograd.profiler.record_function)
def _record_function(tx: Context, real: Any, source: Source) -> Value:
    found = tx.wrapping.seen(real, source)
    if found is not None:
        return found
    tx.guards.type_is(source, torch.autograd.profiler.record_function)
    made = RecordFunction()
    made.source = source
    return tx.wrapping.remember(real, made)


@wraps(torch.profiler.profile, torch.autograd.profiler.profile)
def _profiler(tx: Context, real: Any, source: Source) -> Value:
    raise GraphBreak("CAP236", "a profiler is used, which watches operations one by one")
