"""Whether another module stands in the way of one of the packages that fxstack is made of. Importing this checks it."""

from __future__ import annotations

import importlib.util
import os
import sys

_PACKAGES = (
    "fx_interface",
    "fx_guards",
    "dynamo_capture",
    "aot_autograd",
    "primtorch_decomps",
    "inductor_codegen",
)


def check_not_shadowed() -> None:
    """ImportError FXS104 if importing one of the packages would import something else: a user's ``fx_guards.py`` beside
    the program is found before any installed package."""
    for name in _PACKAGES:
        file = _file_of(name)
        if file is not None and not os.path.exists(os.path.join(os.path.dirname(file), "__about__.py")):
            raise ImportError(
                f"[FXS104] {file} is imported in place of the package {name!r}, which fxstack is made of\n"
                "  to do: give the file another name, or take its folder out of sys.path",
                name=name,
                path=file,
            )


def _file_of(name: str) -> str | None:
    """The file that ``import name`` runs, or has run; None if there is none, or it cannot be told."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        return getattr(loaded, "__file__", None)
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return found.origin if found is not None and found.has_location else None


check_not_shadowed()
