"""Errors of the guards package (codes GRD0xx)."""

from __future__ import annotations

from fx_interface.errors import StackError


class GuardError(StackError):
    """A guard set cannot be built.

    GRD001: a root source that no evaluator can read.
    """
