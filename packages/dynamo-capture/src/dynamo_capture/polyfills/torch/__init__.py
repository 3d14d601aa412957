"""Substitutes for functions of torch, beside those of ``polyfills``, which are tested without torch."""

from dynamo_capture.polyfills import substitute_for
from dynamo_capture.polyfills.torch import (
    collectives,
    encoders,
    forms,
    graphs,
    higher_order,
    jagged,
    module_hooks,
    optimizers,
    scans,
    sequences,
    statistics,
)

__all__ = [
    "collectives",
    "encoders",
    "forms",
    "graphs",
    "higher_order",
    "jagged",
    "module_hooks",
    "optimizers",
    "scans",
    "sequences",
    "statistics",
    "substitute_for",
]
