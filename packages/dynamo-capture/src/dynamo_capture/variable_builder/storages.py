"""The memory of existing tensors, as objects."""

from __future__ import annotations

from typing import Any

import torch

from dynamo_capture.values import Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.storage import StorageValue
from dynamo_capture.variable_builder.objects import wraps_once
from fx_interface.source import Source


@wraps_once(torch.UntypedStorage)
def _storage(tx: Context, real: Any, source: Source) -> Value:
    return StorageValue(real, source)
