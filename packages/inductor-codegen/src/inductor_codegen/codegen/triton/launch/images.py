"""Compiled kernels in an artifact, and on their way to the GPU by the driver, without Triton."""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeAlias

from inductor_codegen.toolchain.kernel_processes import Image

Form: TypeAlias = tuple[str, int, int, int, int, int]
"""What a kernel is compiled for: its name, the constants and options of its launch, and what it takes for granted."""

_UNASKED = 48 << 10
"""Bytes of shared memory that a kernel has without asking."""
_MOST_SHARED = 8
"""``CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES``."""


def written(images: Mapping[Form, Image]) -> tuple[list[Any], bytes]:
    """Images as JSON data and the content of a file."""
    table: list[Any] = []
    contents: list[bytes] = []
    for form, image in images.items():
        contents.append(zlib.compress(image.content, 1))
        table.append([*form, image.name, image.threads, image.shared, len(contents[-1])])
    return table, b"".join(contents)


def read(table: Any, content: bytes) -> dict[Form, Image]:
    """What was ``written``, each content as it lies there; ValueError or TypeError for anything else."""
    found: dict[Form, Image] = {}
    start = 0
    for row in table:
        kernel, *numbers, name, threads, shared, length = row
        rows, points, warps, stages, traits = map(int, numbers)
        end = start + int(length)
        if end > len(content):
            raise ValueError("images of kernels are missing")
        image = Image(content[start:end], str(name), int(threads), int(shared))
        found[str(kernel), rows, points, warps, stages, traits] = image
        start = end
    return found


def load_image(image: Image) -> int | None:
    """The function of an image that was ``read``, loaded into the current context; None where that cannot be done. It
    stays loaded: generated libraries remember it."""
    driver = _driver()
    if driver is None:
        return None
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    content = zlib.decompress(image.content)
    if driver.cuModuleLoadData(ctypes.byref(module), ctypes.c_char_p(content)):
        return None
    if driver.cuModuleGetFunction(ctypes.byref(function), module, image.name.encode()):
        return None
    if image.shared > _UNASKED and driver.cuFuncSetAttribute(function, _MOST_SHARED, image.shared):
        return None
    return function.value


@cache
def _driver() -> Any | None:
    """The functions of the driver that load, which return 0 on success."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
        pointer = ctypes.c_void_p
        library.cuModuleLoadData.argtypes = [ctypes.POINTER(pointer), ctypes.c_char_p]
        library.cuModuleGetFunction.argtypes = [ctypes.POINTER(pointer), pointer, ctypes.c_char_p]
        library.cuFuncSetAttribute.argtypes = [pointer, ctypes.c_int, ctypes.c_int]
    except (OSError, AttributeError):
        return None
    return library
