"""Whether other threads may use torch while this one records.

Torch's generator belongs to a recording while that is made: another thread that draws random numbers on the same GPU
gets an exception. Nothing keeps it from drawing, so that a recording is made where there is no other.
"""

from __future__ import annotations

import sys
import threading

import torch


def is_alone() -> bool:
    """Whether no other thread runs Python, but for one that waits until the backward is done in which this one is: a
    thread of autograd's, which Python did not start."""
    others = sys._current_frames().keys() - {threading.get_ident()}
    if len(others) != 1 or torch._C._current_graph_task_id() == -1:
        return not others
    return not _is_pythons_own(threading.get_ident())


def _is_pythons_own(ident: int) -> bool:
    dummy = threading._DummyThread
    return any(thread.ident == ident and not isinstance(thread, dummy) for thread in threading.enumerate())
