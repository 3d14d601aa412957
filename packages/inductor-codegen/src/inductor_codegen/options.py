"""The options of code generation, a frozen value that is passed down."""

from __future__ import annotations

from pathlib import Path

from fx_interface.python_runtime.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CodegenOptions:
    """What a caller may choose.

    ``cache_dir`` is where artifacts are kept (None: the platform's cache folder for this package), ``cache`` whether
    they are kept at all; ``compiler`` is the C++ compiler's command, as in ``$CXX`` (None: the first that is found).
    ``debug``: kernels are named by operators and lines of the program, and libraries know the lines of their C++, which
    lies beside them, for debuggers and profilers; the instructions are the same. ``autotune``: on a GPU, kernels of
    matrix products and launches of others are chosen by measuring (``native.tuning``).
    """

    cache_dir: Path | None = None
    cache: bool = True
    compiler: str | None = None
    debug: bool = False
    autotune: bool = False
