"""A compiled module that is, for everybody else, the module itself.

``compile_module(m, optimize)`` returns an object of a fresh subclass of ``type(m)`` that shares ``m.__dict__``:
parameters, buffers, hooks and the training flag are one and the same, ``state_dict`` keys do not change, and
``isinstance`` holds. What a class keeps in ``__slots__`` is read and written there, ``__class__`` is the module's own,
and who gives the compiled module another class gives it to the module. Only calling it is different: the call goes to
the compiled function of the original. A copy is compiled anew; a pickle is that of the plain module.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from types import MemberDescriptorType
from typing import Any, TypeVar, cast

from torch import nn
from torch.fx import GraphModule, _symbolic_trace

from dynamo_capture._eval_frame import ForwardedCall

M = TypeVar("M", bound=nn.Module)
Optimize = Callable[[Callable[..., Any]], Callable[..., Any]]
_SLOTS = ("_fxstack_original", "_fxstack_call", "_fxstack_optimize", "__fxstack_capture__")
_REAL_CLASS = object.__dict__["__class__"]
"""The attribute that Python itself keeps, under the one that shows the original's class."""


def _class_of_original(twin: CompiledModule) -> type:
    return type(twin._fxstack_original)


def _change_class(twin: CompiledModule, cls: type) -> None:
    """What a parametrization does, for instance: the original gets the class, and the twin a fresh subclass of it."""
    plain = twin._fxstack_original
    plain.__class__ = cls
    _REAL_CLASS.__set__(twin, _twin_class(plain))


class _SignatureOfOriginal:
    """``inspect.signature`` of a compiled module; classes have none of the kind."""

    def __get__(self, twin: Any, owner: type) -> inspect.Signature:
        if twin is None:
            raise AttributeError("__signature__")
        return inspect.signature(twin._fxstack_original)


class CompiledModule:
    """Mixed in front of the module's own class.

    What belongs to the twin is in slots of the fresh class: a class that held the module would keep it, and all that is
    compiled for it, until the next garbage collection.
    """

    _fxstack_original: nn.Module
    _fxstack_call: Callable[..., Any]
    _fxstack_optimize: Optimize
    __signature__ = _SignatureOfOriginal()
    __class__ = property(_class_of_original, _change_class)

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Nothing: the fresh class is no subclass that the program has written, and goes into no registry of its."""

    def _in_python(self, *args: Any, **kwargs: Any) -> Any:
        if _symbolic_trace._is_fx_tracing_flag:  # which wants to see the module itself
            return cast(nn.Module, super()).__call__(*args, **kwargs)
        return self._fxstack_call(*args, **kwargs)

    __call__: Callable[..., Any] = functools.update_wrapper(
        ForwardedCall(_in_python, "_fxstack_call", vars(_symbolic_trace), "_is_fx_tracing_flag"), _in_python
    )
    del _in_python

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        duplicate = compile_module(copy.deepcopy(self._fxstack_original, memo), self._fxstack_optimize)
        memo[id(self)] = duplicate
        return duplicate

    def __copy__(self) -> Any:
        return compile_module(copy.copy(self._fxstack_original), self._fxstack_optimize)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._fxstack_original.__reduce_ex__(protocol)


class CompiledGraphModule(CompiledModule):
    """Mixed in front of a ``torch.fx.GraphModule``, whose class holds the ``forward`` that its graph says."""

    def recompile(self) -> Any:
        """Write ``forward`` anew, for the plain module: its compiled function notices."""
        return cast(GraphModule, self._fxstack_original).recompile()


class _SlotOfOriginal:
    """A slot of the module's class, in its twin: that of the original."""

    __slots__ = ("slot",)

    def __init__(self, slot: MemberDescriptorType) -> None:
        self.slot = slot

    def __get__(self, twin: Any, owner: type) -> Any:
        return self if twin is None else self.slot.__get__(twin._fxstack_original)

    def __set__(self, twin: Any, value: Any) -> None:
        self.slot.__set__(twin._fxstack_original, value)

    def __delete__(self, twin: Any) -> None:
        self.slot.__delete__(twin._fxstack_original)


def original_of(module: nn.Module) -> nn.Module:
    """The plain module behind a compiled one; any other module is returned as it is."""
    return module._fxstack_original if isinstance(module, CompiledModule) else module


def compile_module(module: M, optimize: Optimize) -> M:
    """The compiled twin of ``module``; compiling a compiled module starts again from the plain one."""
    plain = original_of(module)
    call = optimize(plain)
    # the class's own __new__ may want arguments, or make a class of its own
    twin: Any = object.__new__(_twin_class(plain))
    object.__setattr__(twin, "__dict__", plain.__dict__)
    for name, value in zip(
        _SLOTS, (plain, call, optimize, getattr(call, "__fxstack_capture__", None)), strict=True
    ):
        object.__setattr__(twin, name, value)
    return cast(M, twin)


def _twin_class(plain: nn.Module) -> type:
    """A fresh class for the twin of a module."""
    cls = type(plain)
    namespace: dict[str, Any] = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__slots__": _SLOTS,
    }
    known: set[str] = set()
    for base in cls.__mro__:
        for name, member in vars(base).items():
            if isinstance(member, MemberDescriptorType) and name not in known:
                namespace[name] = _SlotOfOriginal(member)
        known.update(vars(base))
    mixed_in = CompiledGraphModule if isinstance(plain, GraphModule) else CompiledModule
    return type.__new__(type(cls), cls.__name__, (mixed_in, cls), namespace)
