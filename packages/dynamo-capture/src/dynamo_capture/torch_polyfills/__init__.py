"""Substitutes for functions of torch, beside those of ``polyfills``, which are tested without torch."""

from dynamo_capture.polyfills import substitute_for
from dynamo_capture.torch_polyfills import optimizers, scans, sequences

__all__ = ["optimizers", "scans", "sequences", "substitute_for"]
