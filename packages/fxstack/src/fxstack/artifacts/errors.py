"""Why a model cannot be exported as one graph, or written to an artifact."""

from __future__ import annotations

from fx_interface.errors import StackError


class ExportError(StackError):
    """What cannot be exported, with what to do about it.

    FXS501 the model is not one graph; FXS502 an argument is of a kind that a contract cannot state; FXS503 a result is;
    FXS504 the model changes objects besides tensors; FXS505 the graph relies on what a contract cannot check; FXS506 a
    size that was said to vary is fixed by the model; FXS507 ``dynamic_shapes`` does not fit the arguments; FXS508 the
    graph needs a part of autograd's runtime that artifacts do not have; FXS509 an unknown target; FXS510 the file would
    be too large; FXS511 nothing is trained.
    """
