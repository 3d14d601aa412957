"""A compiled module that is, for everybody else, the module itself.

``compile_module(m, optimize)`` returns an object of a fresh subclass of ``type(m)`` that shares ``m.__dict__``:
parameters, buffers, hooks and the training flag are one and the same, ``state_dict`` keys do not change, and
``isinstance`` holds. Only calling it is different: the call goes to the compiled function of the original. A copy is
compiled anew; a pickle is that of the plain module.
"""

from __future__ import annotations

import copy
import copyreg
from collections.abc import Callable
from typing import Any, TypeVar, cast

from torch import nn
from torch.fx import GraphModule

M = TypeVar("M", bound=nn.Module)
Optimizer = Callable[[Callable[..., Any]], Callable[..., Any]]
_SLOTS = ("_fxstack_original", "_fxstack_call", "_fxstack_optimize", "__fxstack_capture__")


class CompiledModule:
    """Mixed in front of the module's own class.

    What belongs to the twin is in slots of the fresh class: a class that held the module would keep it, and all that is
    compiled for it, until the next garbage collection.
    """

    _fxstack_original: nn.Module
    _fxstack_call: Callable[..., Any]
    _fxstack_optimize: Optimizer

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._fxstack_call(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        duplicate = compile_module(copy.deepcopy(self._fxstack_original, memo), self._fxstack_optimize)
        memo[id(self)] = duplicate
        return duplicate

    def __copy__(self) -> Any:
        return compile_module(copy.copy(self._fxstack_original), self._fxstack_optimize)

    def __reduce_ex__(self, protocol: Any) -> Any:
        reduced = self._fxstack_original.__reduce_ex__(protocol)
        if isinstance(reduced, tuple) and reduced[0] is copyreg.__newobj__:  # type: ignore[attr-defined]
            # pickle refuses __newobj__ for a class that is not the object's own: the plain class, called directly
            return (object.__new__, *reduced[1:])
        return reduced


class CompiledGraphModule(CompiledModule):
    """Mixed in front of a ``torch.fx.GraphModule``, whose class holds the ``forward`` that its graph says."""

    def recompile(self) -> Any:
        """Write ``forward`` anew, for the plain module: its compiled function notices."""
        return cast(GraphModule, self._fxstack_original).recompile()


def original_of(module: nn.Module) -> nn.Module:
    """The plain module behind a compiled one; any other module is returned as it is."""
    return module._fxstack_original if isinstance(module, CompiledModule) else module


def compile_module(module: M, optimize: Optimizer) -> M:
    """The compiled twin of ``module``; compiling a compiled module starts again from the plain one."""
    plain = original_of(module)
    cls = type(plain)
    call = optimize(plain)
    namespace = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__slots__": _SLOTS,
    }
    mixed_in = CompiledGraphModule if isinstance(plain, GraphModule) else CompiledModule
    compiled_class = type.__new__(type(cls), cls.__name__, (mixed_in, cls), namespace)
    twin: Any = object.__new__(
        compiled_class
    )  # the class's own __new__ may want arguments, or make a class of its own
    object.__setattr__(twin, "__dict__", plain.__dict__)
    for name, value in zip(
        _SLOTS, (plain, call, optimize, getattr(call, "__fxstack_capture__", None)), strict=True
    ):
        object.__setattr__(twin, name, value)
    return cast(M, twin)
