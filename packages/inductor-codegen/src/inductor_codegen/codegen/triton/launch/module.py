"""A generated Triton module as a callable: written to a file, because Triton reads the source of its kernels there."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any


def check_triton() -> None:
    """ImportError without Triton, which is not imported."""
    if importlib.util.find_spec("triton") is None:
        raise ImportError("no module named 'triton'", name="triton")


def load_module(path: Path) -> ModuleType:
    """The module in ``path``, of its own and not among ``sys.modules``; ImportError without Triton.

    Under ``TRITON_INTERPRET=1`` its kernels run on CPU tensors, with numpy for the device library's functions.
    """
    spec = importlib.util.spec_from_file_location(f"inductor_codegen_generated_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if os.environ.get("TRITON_INTERPRET") == "1":
        from inductor_codegen.codegen.triton.launch.interpreter import DEVICE_LIBRARY

        module.libdevice = DEVICE_LIBRARY  # type: ignore[attr-defined]
    return module


def load_call(path: Path) -> Callable[..., tuple[Any, ...]]:
    """The function ``call`` of the module in ``path``."""
    call: Callable[..., tuple[Any, ...]] = load_module(path).call
    return call
