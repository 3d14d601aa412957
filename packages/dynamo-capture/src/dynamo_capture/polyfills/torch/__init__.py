"""Substitutes for functions of torch, beside those of ``polyfills``, which are tested without torch."""

from dynamo_capture.polyfills import substitute_for
from dynamo_capture.polyfills.torch import (
    collectives,
    counting,
    encoders,
    forms,
    graphs,
    higher_order,
    jagged,
    optimizers,
    scans,
    sequences,
    statistics,
)

__all__ = [
    "collectives",
    "counting",
    "encoders",
    "forms",
    "graphs",
    "higher_order",
    "jagged",
    "optimizers",
    "scans",
    "sequences",
    "statistics",
    "substitute_for",
]
