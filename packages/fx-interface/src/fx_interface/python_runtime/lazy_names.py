"""A package's public names, each loaded with its module when it is first asked for (PEP 562).

    if TYPE_CHECKING:
        from package.module import name
    else:
        __getattr__, __dir__ = lazy_names(__name__, {"package.module": ("name",)})

A name must not be that of a module of the package: importing the module would put it where the name belongs.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package that gives out names of those modules."""
    homes = {name: module for module, names in modules.items() for name in names}
    own = vars(sys.modules[package])

    def load(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(home), name)
        own[name] = value
        return value

    return load, lambda: sorted({*own, *homes})
