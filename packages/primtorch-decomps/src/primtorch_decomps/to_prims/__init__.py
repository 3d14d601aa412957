"""The pass from dialect ``aten`` to ``prims``."""

from typing import TYPE_CHECKING

from fx_interface.python_runtime.lazy_names import lazy_names

if TYPE_CHECKING:
    from primtorch_decomps.to_prims.decompose import decompose_with
else:
    __getattr__, __dir__ = lazy_names(__name__, {"primtorch_decomps.to_prims.decompose": ("decompose_with",)})

__all__ = ["decompose_with"]
