"""Existing objects that set a mode, or watch, in a ``with`` block, as values."""

from __future__ import annotations

import sys
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import OBJECT_OPERATION, OUTSIDE_WORLD
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.part_options import patch_options
from dynamo_capture.semantics.modes.contexts import RecordFunction
from dynamo_capture.semantics.modes.modes import Autocast, InferenceMode
from dynamo_capture.semantics.modes.patched_options import STOCK, PartBlock
from dynamo_capture.values import (
    Value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.variable_builder.objects import WRAPPERS, wraps, wraps_once
from fx_interface.source import AttrSource, Source


def _settings(tx: Context, real: Any, source: Source, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Attributes of a context manager, guarded; an object that was never initialized has none."""
    if not all(hasattr(real, name) for name in names):
        raise GraphBreak(OBJECT_OPERATION, f"{source} is a {type(real).__name__} that was not initialized")
    for name in names:
        tx.guards.equals(AttrSource(source, name), getattr(real, name))
    return tuple(getattr(real, name) for name in names)


@wraps_once(torch.autocast)
def _autocast(tx: Context, real: Any, source: Source) -> Value:
    return Autocast(_settings(tx, real, source, ("device", "fast_dtype", "_enabled", "_cache_enabled")))


@wraps_once(patch_options)
def _part(tx: Context, real: Any, source: Source) -> Value:
    tx.guards.equals(AttrSource(source, "changes"), real.changes)
    return PartBlock(real.changes)


def _stock_flags(tx: Context, real: Any, source: Source) -> Value:
    """What ``torch._dynamo.patch_dynamo_config`` made: it changes no flag that means anything here."""
    return PartBlock({})


def register_loaded_blocks() -> None:
    """Declare how a class of stock's compiler is read, if it is loaded."""
    kind = getattr(sys.modules.get(STOCK), "DynamoConfigPatchProxy", None)
    if kind is not None and kind not in WRAPPERS:
        wraps_once(kind)(_stock_flags)


@wraps_once(torch.inference_mode)
def _inference_mode(tx: Context, real: Any, source: Source) -> Value:
    (mode,) = _settings(tx, real, source, ("mode",))
    return InferenceMode(mode)


@wraps_once(torch.autograd.profiler.record_function)
def _record_function(tx: Context, real: Any, source: Source) -> Value:
    return RecordFunction()


@wraps(torch.profiler.profile, torch.autograd.profiler.profile)
def _profiler(tx: Context, real: Any, source: Source) -> Value:
    raise GraphBreak(OUTSIDE_WORLD, "a profiler is used, which watches operations one by one")
