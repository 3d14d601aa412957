"""A defect of ours while compiling must not stop the user's program: it becomes a refusal, and eager runs the code."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from torch.fx import GraphModule

from fx_interface.errors import StackError, UnsupportedProgramError

OnInternalError = Literal["eager", "raise"]


def default_policy() -> OnInternalError:
    """``$FXSTACK_ON_INTERNAL_ERROR`` if it is ``"raise"``, as tests set it; else ``"eager"``."""
    return "raise" if os.environ.get("FXSTACK_ON_INTERNAL_ERROR") == "raise" else "eager"


@contextmanager
def refused(policy: OnInternalError, graph: GraphModule | None = None) -> Iterator[None]:
    """Raises UnsupportedProgramError FXS301 for what is raised inside by mistake, unless the policy is ``"raise"``; a
    report of the defect is written to a file that the error names. ``graph``: what is compiled."""
    try:
        yield
    except StackError:
        raise
    except Exception as error:
        if policy == "raise":
            raise
        from fxstack.diagnosis.crash_report import write_crash_report  # nothing that a sound compiler needs

        path = write_crash_report(error, graph)
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise UnsupportedProgramError(
            "FXS301",
            f"a defect of the compiler: {type(error).__name__}: {error} (at {place.filename}:{place.lineno})",
            action=f"please report it{'' if path is None else f' with {path}'}; "
            "options={'on_internal_error': 'raise'} raises the error with its traceback",
        ) from error
