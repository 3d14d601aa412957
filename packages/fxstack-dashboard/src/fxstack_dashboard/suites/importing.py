"""Importing torchvision where its own operators do not load: its wheels are built for CUDA, torch may be for CPUs."""

from __future__ import annotations

import importlib
from typing import Any

import torch

_DECLARED = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
"""The operators that torchvision's Python looks for while it is imported."""


def import_torchvision() -> None:
    """Import torchvision, with its operators declared if its library does not load. No image classifier calls one;
    whoever does is told by torch that it has no kernel. What else goes wrong is raised."""
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise
        untyped: Any = torch.library
        library = untyped.Library("torchvision", "FRAGMENT")
        for schema in _DECLARED:
            library.define(schema)
        _kept.append(library)
        importlib.import_module("torchvision")


_kept: list[Any] = []
"""Declarations last as long as these."""
