"""Which code is captured on its own when a frame of it starts."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from types import CodeType
from typing import Any

import torch

from dynamo_capture.foundation import numpy_types
from fx_interface.backend import STACK_PACKAGES, is_runtime

_UNCAPTURED: tuple[str, ...] = ()


def is_worth_capturing(code: CodeType, namespace: Mapping[str, Any]) -> bool:
    """Whether frames of this code are captured on their own: not the machinery of Python, torch or the stack itself."""
    name = code.co_filename
    module = str(namespace.get("__name__"))
    if name.startswith("<frozen") or module.partition(".")[0] in STACK_PACKAGES or is_runtime(module):
        return False
    if _is_called_by_the_collector(code) or (name == "<string>" and _is_written_for_torch(module)):
        return False
    is_whole = _is_torch_module_code(name) and code.co_name not in _OF_OBJECTS and not looks_up_module(code)
    return not name.startswith(_UNCAPTURED) or is_whole


def is_closed(code: CodeType, namespace: Mapping[str, Any]) -> bool:
    """Whether nothing that such a frame calls is captured: the import of a module, what runs compiled code (a backward
    is called by torch's engine, where the region's hook is active), what the garbage collector calls, and the entry of
    what stock's compiler compiles or leaves alone (``torch.compiler.disable``)."""
    name = code.co_filename
    if name.startswith("<frozen importlib") or _is_called_by_the_collector(code):
        return True
    return is_runtime(str(namespace.get("__name__"))) or name.endswith("/torch/_dynamo/eval_frame.py")


def _is_called_by_the_collector(code: CodeType) -> bool:
    """Whether it runs wherever memory happens to be made: it belongs to no program that is captured."""
    return any(
        getattr(callback, "__code__", getattr(type(callback).__call__, "__code__", None)) is code
        for callback in gc.callbacks
    )


def _is_written_for_torch(module: str) -> bool:
    """Whether code that was made from a text is a method of one of torch's data classes, or makes a named tuple."""
    return module.partition(".")[0] == "torch" or module.startswith("namedtuple_")


_OF_OBJECTS = frozenset(
    {
        "__getattr__",
        "__setattr__",
        "__delattr__",
        "__dir__",
        "__iter__",
        "__len__",
        "__contains__",
        "__setstate__",
    }
)
"""Methods of torch's modules that compute nothing, and that have to be quick."""

_LOOKUPS = frozenset({"__getitem__", "_get_item_by_idx", "_get_abs_string_index"})


def is_torchs(code: CodeType) -> bool:
    """Whether it is code of one of torch's modules."""
    return _is_torch_module_code(code.co_filename)


def looks_up_module(code: CodeType) -> bool:
    """Whether it is what finds a module or a parameter in one of torch's containers: where data say which, the graph
    ends around it, so that what comes after has one version for all that may be found."""
    name = code.co_filename
    return _is_torch_module_code(name) and name.endswith("/container.py") and code.co_name in _LOOKUPS


def is_file_of_torch(name: str) -> bool:
    """Whether a file is one of torch's own."""
    return name.startswith(_TORCH)


def _is_torch_module_code(name: str) -> bool:
    return "/torch/nn/modules/" in name


def _uncaptured_paths() -> tuple[str, ...]:
    stdlib = os.path.dirname(os.path.abspath(os.__file__))
    packages = [torch.__file__, *([numpy_types.FILE] if numpy_types.FILE else [])]
    return (
        *(os.path.dirname(os.path.abspath(file)) + os.sep for file in packages),
        *(os.path.join(stdlib, entry) for entry in os.listdir(stdlib) if entry != "site-packages"),
    )


_UNCAPTURED = _uncaptured_paths()
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
