"""The errors of this package: codes DEC1xx for programs, DEC2xx for declarations."""

from __future__ import annotations

from fx_interface.errors import StackError


class RuleMismatchError(Exception):
    """A rule does not cover these arguments; the operator's own kernel is asked instead, and may raise an error."""


class DuplicateDeclarationError(StackError):
    """An operator has two decompositions or two rules (code DEC201); the message names both places."""
