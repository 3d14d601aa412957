"""Decompositions of ATen onto primitives, and the shape, stride and dtype rules of ATen operators."""

import fx_interface  # noqa: F401  (first: modules that follow get builtins of their own)

# isort: split
from typing import TYPE_CHECKING

from fx_interface.python_runtime.lazy_names import lazy_names
from primtorch_decomps.__about__ import __version__

if TYPE_CHECKING:
    from primtorch_decomps.errors import DuplicateDeclarationError
    from primtorch_decomps.exact import STRICT
    from primtorch_decomps.prims import PrimTensor
    from primtorch_decomps.registry import (
        DECOMPOSITIONS,
        RULES,
        Decomposition,
        OperatorTable,
        decomposes,
        spec_rule,
    )
    from primtorch_decomps.spec_inference.library import Library
    from primtorch_decomps.to_prims.standard import LIBRARY, decompose
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "primtorch_decomps.errors": ("DuplicateDeclarationError",),
            "primtorch_decomps.exact": ("STRICT",),
            "primtorch_decomps.to_prims.standard": ("LIBRARY", "decompose"),
            "primtorch_decomps.prims": ("PrimTensor",),
            "primtorch_decomps.registry": (
                *("DECOMPOSITIONS", "RULES", "Decomposition", "OperatorTable", "decomposes", "spec_rule"),
            ),
            "primtorch_decomps.spec_inference.library": ("Library",),
        },
    )

__all__ = [
    "DECOMPOSITIONS",
    "LIBRARY",
    "RULES",
    "STRICT",
    "Decomposition",
    "DuplicateDeclarationError",
    "Library",
    "OperatorTable",
    "PrimTensor",
    "__version__",
    "decompose",
    "decomposes",
    "spec_rule",
]
