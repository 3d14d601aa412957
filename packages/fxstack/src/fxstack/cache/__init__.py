"""``fxstack.cache``: what one machine compiled, on another one. A file, or a remote cache (docs/artifacts.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fx_interface.python_runtime.lazy_names import lazy_names

if TYPE_CHECKING:
    from fxstack.cache.errors import CacheError
    from fxstack.cache.files import export, import_
    from fxstack.cache.moving import Moved, pull, push, verify
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "fxstack.cache.errors": ("CacheError",),
            "fxstack.cache.files": ("export", "import_"),
            "fxstack.cache.moving": ("Moved", "pull", "push", "verify"),
        },
    )

__all__ = ["CacheError", "Moved", "export", "import_", "pull", "push", "verify"]
