"""What calling functions means whose modules are perhaps never loaded: nothing is imported for them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from dynamo_capture.semantics.registry import HANDLERS, Handler
from dynamo_capture.tables import declaring

_DECLARED: dict[tuple[str, str], Handler] = {}


def handles_loaded(module: str, name: str) -> Callable[[Handler], Handler]:
    """Declare what calling a function of a module means that is perhaps never loaded, or a method of a class there."""
    return declaring(_DECLARED, (module, name))


def register_loaded() -> None:
    """Put what is declared into the table of calls, as far as its modules are loaded."""
    for (module, name), handler in _DECLARED.items():
        loaded = sys.modules.get(module)
        function = None if loaded is None else _member(loaded, name)
        if function is not None:
            HANDLERS.setdefault(function, handler)


def _member(owner: Any, name: str) -> Any:
    for part in name.split("."):
        owner = getattr(owner, part, None)
    return owner
