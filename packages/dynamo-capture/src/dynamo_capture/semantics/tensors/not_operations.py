"""Methods of tensors that are no operations: what they ask or change is not in any graph, so that they end it.

Whatever is not listed here is recorded as an operation, which a graph may run later, twice or not at all. A method that
keeps or calls a Python callable, asks for an address, or changes what autograd does with the object must be listed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Final

import torch

from dynamo_capture.foundation.break_kinds import (
    AUTOGRAD_STATE,
    CONTENT_DECIDES,
    HOOKED_TENSOR,
    OUTSIDE_WORLD,
    RUNS_AUTOGRAD,
    TENSOR_MEMORY,
    UNKNOWN_ARGUMENT,
    UNTRACEABLE,
)
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values import Value

_ENGINE: Final = (RUNS_AUTOGRAD, "`backward()` runs the autograd engine")
_CONTENT: Final = (CONTENT_DECIDES, "a conversion to numpy reads the tensor's content")
_ADDRESS: Final = (TENSOR_MEMORY, "the address of a tensor is asked for")
_LAYOUT: Final = (TENSOR_MEMORY, "the layout of a tensor's memory is asked for")
_STORAGE: Final = (TENSOR_MEMORY, "the storage of a tensor is asked for")
_HOOK: Final = (HOOKED_TENSOR, "a hook is registered on a tensor")
_CALLBACK: Final = (CONTENT_DECIDES, "a Python function is called with each element of a tensor")
_PARTS: Final = (AUTOGRAD_STATE, "a tensor is asked what it has as an object")
_OBJECT: Final = (AUTOGRAD_STATE, "a tensor is changed as an object")

_ENDING: Final = {
    "backward": _ENGINE,
    "reinforce": _ENGINE,
    "__array__": _CONTENT,
    "data_ptr": _ADDRESS,
    "const_data_ptr": _ADDRESS,
    "is_conj": _LAYOUT,
    "is_neg": _LAYOUT,
    "storage": _STORAGE,
    "storage_type": _STORAGE,
    "_typed_storage": _STORAGE,
    "_register_hook_dict": _HOOK,
    "apply_": _CALLBACK,
    "map_": _CALLBACK,
    "map2_": _CALLBACK,
    "__reduce_ex__": _PARTS,
    "_reduce_ex_internal": _PARTS,
    "__dir__": _PARTS,
    "__deepcopy__": (AUTOGRAD_STATE, "a tensor is copied with all that it has as an object"),
    "__setstate__": _OBJECT,
    "retain_grad": (AUTOGRAD_STATE, "the gradient of an intermediate tensor is to be kept"),
    "module_load": _OBJECT,
    "record_stream": _OBJECT,
    "share_memory_": _OBJECT,
    "_cdata": _ADDRESS,
    "_python_dispatch": _OBJECT,
    "_clear_non_serializable_cached_data": _OBJECT,
    "_fix_weakref": _OBJECT,
    "_use_count": _OBJECT,
    "volatile": (OUTSIDE_WORLD, "reading `volatile` gives a warning"),
}
"""The code and the words of the break at each method or attribute."""

_FUNCTIONS: Final[dict[object, str]] = {
    function: name
    for name in _ENDING
    if isinstance(function := vars(torch).get(name), BuiltinFunctionType) and hasattr(torch.Tensor, name)
}
"""Functions of ``torch`` that do what a method does: ``torch.is_conj(x)``."""

_BELOW_DISPATCH: Final[frozenset[object]] = frozenset(
    vars(torch)[name]
    for name in (
        "_cudnn_rnn_flatten_weight",
        "_sobol_engine_draw",
        "_sobol_engine_ff_",
        "_sobol_engine_initialize_state_",
        "_sobol_engine_scramble_",
    )
    if name in vars(torch)
)
"""Functions in C++ that go to the memory of their arguments, below all dispatch: stand-ins have none. The first puts
weights into one piece of memory, which its schema does not tell."""

_REGISTERING: Final = frozenset({"register_hook", "register_post_accumulate_grad_hook"})
"""Methods that keep a Python function where ``hooks.py`` can follow them."""

_CALLABLES: Final = (FunctionType, BuiltinFunctionType, MethodType)


def check_is_known(name: str) -> None:
    """A graph break where ``tensor.name`` is a fact about the object in memory."""
    if name in ("_cdata", "_python_dispatch", "volatile"):
        raise GraphBreak(*_ENDING[name])


def check_function_is_operation(function: object) -> None:
    """A graph break where a function of torch is no operation on tensors."""
    name = _FUNCTIONS.get(function) if isinstance(function, BuiltinFunctionType) else None
    if name is not None:
        raise GraphBreak(*_ENDING[name])
    if isinstance(function, BuiltinFunctionType) and function in _BELOW_DISPATCH:
        raise GraphBreak(UNTRACEABLE, f"{function.__name__} goes to the memory of its arguments")


def check_is_operation(name: str, args: Sequence[Value], kwargs: Mapping[str, Value]) -> None:
    """A graph break where ``tensor.name(*args, **kwargs)`` is no operation on tensors."""
    ending = _ENDING.get(name)
    if ending is not None:
        raise GraphBreak(*ending)
    if name in _REGISTERING:
        return
    for value in (*args, *kwargs.values()):
        if value.python_type() in _CALLABLES:
            raise GraphBreak(UNKNOWN_ARGUMENT, f"the tensor method {name} gets a Python function")
