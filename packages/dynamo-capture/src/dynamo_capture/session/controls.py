"""What a user may say about capture from inside the program. Names and meanings are those of ``torch.compiler``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import WrapperDescriptorType
from typing import Any, Final, Literal, TypeVar, get_args

import torch

from dynamo_capture import _eval_frame
from dynamo_capture.foundation.class_members import member
from dynamo_capture.hook.frame_hook import region
from dynamo_capture.session.stock_settings import in_stock_set, stock_stance
from fx_interface.plugins import load_backend

F = TypeVar("F", bound=Callable[..., Any])
Stance = Literal[
    "default",
    "force_eager",
    "eager_on_recompile",
    "fail_on_recompile",
    "eager_then_compile",
    "aot_eager_then_compile",
]


SKIP_MARK = "__dynamo_capture_skip__"
"""The attribute of a function that must not be captured; its value says why."""
_CONSTANT_MARK = "__dynamo_capture_constant__"


_COMPILERS: list[Callable[..., Any]] = []
_STOCK_COMPILER: Final = vars(torch)["compile"]


def declare_compiler(function: F) -> F:
    """Declare what gives optimized functions, as ``optimize(backend, ...)(model)`` does: ``function(model, ...)``, or
    ``function(...)(model)``. In a captured function a call is no break."""
    _COMPILERS.append(function)
    return function


def is_compiler(function: Any) -> bool:
    """Whether ``declare_compiler`` was told of the function, or it is stock's."""
    return is_stock_compiler(function) or any(function is one for one in _COMPILERS)


def is_stock_compiler(function: Any) -> bool:
    """Whether it is the function by which stock's compiler is asked to compile another one."""
    return function is _STOCK_COMPILER


def is_compiling() -> bool:
    """Whether the code runs inside a trace: True while it is captured, False in plain Python."""
    return False


def graph_break(msg: str = "") -> None:
    """End the captured graph here; the rest of the function is captured anew. Nothing in plain Python.

    ``msg`` is shown where the break is reported.
    """


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A function that is never captured: neither itself nor, while it runs, what it calls.

    ``recursive=False``: what it calls is captured on its own. ``reason`` is shown where a graph breaks because of it.
    Without ``fn``, a decorator. Anything callable may be given, a module too.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    named = getattr(fn, "__qualname__", type(fn).__qualname__)
    if recursive:

        def uncaptured(*args: Any, **kwargs: Any) -> Any:
            with region(None):
                return fn(*args, **kwargs)
    else:
        code = getattr(fn if hasattr(fn, "__code__") else type(fn).__call__, "__code__", None)
        if code is not None:
            _eval_frame.set_skip(code, 1)

        def uncaptured(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)

    if callable(fn) and hasattr(fn, "__name__"):
        functools.update_wrapper(uncaptured, fn)
    why = f": {reason}" if reason else ""
    setattr(uncaptured, SKIP_MARK, f"{named} is marked by disable(){why}")
    return uncaptured


def skip_reason(function: Any) -> str | None:
    """Why a function must not be traced into, if it must not: our mark or the one that torch's ``disable`` leaves."""
    found: str | None = getattr(function, SKIP_MARK, None)
    if found is not None:
        return found
    named = getattr(function, "__qualname__", function)
    if getattr(function, "_torchdynamo_disable", False):
        why = getattr(function, "_torchdynamo_disable_msg", None) or ""
        alone: Any = getattr(function, "_torchdynamo_orig_callable", None)
        if hasattr(alone, "__code__") and not getattr(function, "_torchdynamo_disable_recursive", True):
            _eval_frame.set_skip(alone.__code__, 1)  # what it calls is captured, itself is not
        return f"{named} is marked by torch.compiler.disable: {why}"
    if getattr(function, "_dynamo_forbidden", False) and not str(function.__module__).startswith("torch."):
        return f"{named} is marked by torch._dynamo.forbid_in_graph"
    return None


def disallowed_reason(function: Any) -> str | None:
    """Why no call of a function may be part of a graph, if the program says that it may not. What stock's compiler says
    of its own functions, as of ``graph_break``, is not meant for others."""
    try:
        if _names(_DISALLOWED, function):
            return f"{getattr(function, '__qualname__', function)} is marked by disallow_in_graph"
    except TypeError:
        pass
    if not in_stock_set("_disallowed_callable_ids", function):
        return None
    if not str(getattr(function, "__module__", "")).startswith("torch._dynamo."):
        return f"{getattr(function, '__qualname__', function)} is marked by torch._dynamo.disallow_in_graph"
    return None


_ALLOWED: set[Any] = set()
_DISALLOWED: set[Any] = set()


def _names(marked: set[Any], function: Any) -> bool:
    """Whether it is among them. An object of a class that has a hash of its own, in whatever form, is not asked."""
    if type(member(type(function), "__hash__")) is not WrapperDescriptorType:
        return any(function is one for one in marked)
    return function in marked


def allow_in_graph(fn: Any) -> Any:
    """Make every call of ``fn`` one node: it is run, not looked into. It must be free of side effects.

    A list or tuple of functions is taken too.
    """
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(one) for one in fn]
    if not callable(fn):
        raise TypeError(f"allow_in_graph takes a function, not {fn!r}")
    _ALLOWED.add(fn)
    _DISALLOWED.discard(fn)
    return fn


def disallow_in_graph(fn: Any) -> Any:
    """Make every call of ``fn`` a graph break. A list or tuple of functions is taken too."""
    if isinstance(fn, (list, tuple)):
        return [disallow_in_graph(one) for one in fn]
    if not callable(fn):
        raise TypeError(f"disallow_in_graph takes a function, not {fn!r}")
    _ALLOWED.discard(fn)
    _DISALLOWED.add(fn)
    return fn


def is_allowed_in_graph(function: Any) -> bool:
    """Whether ``allow_in_graph``, ours or torch's, was called on this function."""
    try:
        return _names(_ALLOWED, function) or in_stock_set("_allowed_callable_ids", function)
    except TypeError:
        return False


def assume_constant_result(fn: F) -> F:
    """``fn`` gives the same result in every call: while tracing it is run once, and its result becomes a constant."""
    setattr(fn, _CONSTANT_MARK, True)
    return fn


def has_constant_result(function: Any) -> bool:
    """Whether a function is marked by ``assume_constant_result``, ours or torch's."""
    return bool(
        getattr(function, _CONSTANT_MARK, False) or getattr(function, "_dynamo_marked_constant", False)
    )


class _StanceOwner:
    """The process's stance."""

    def __init__(self) -> None:
        self.current: Stance = "default"
        self.backend: Any = None
        self.on_other_backend: Callable[[], None] = _nothing

    def change(self, stance: Stance, backend: Any = None) -> tuple[Stance, Any]:
        previous = self.current, self.backend
        self.current, self.backend = stance, backend
        _eval_frame.set_paused(stance == "force_eager")
        if backend is not previous[1]:
            self.on_other_backend()
        return previous


def _nothing() -> None:
    pass


_STANCE = _StanceOwner()


def current_stance() -> Stance:
    """What ``set_stance`` said last; where it says nothing, what torch's did."""
    return _STANCE.current if _STANCE.current != "default" else stock_stance()[0]  # type: ignore[return-value]


def forced_backend() -> Any:
    """The backend that the stance puts in place of all others, or None."""
    return _STANCE.backend if _STANCE.backend is not None else stock_stance()[1]


def when_backend_changes(forget: Callable[[], None]) -> None:
    """What is called where ``set_stance`` puts another backend in place of all."""
    _STANCE.on_other_backend = forget


class set_stance:
    """How compiled functions behave from now on, in all threads; also a context manager and a decorator.

    "default": compile as needed. "force_eager": run everything uncompiled. "eager_on_recompile": use what is compiled
    where it fits, compile nothing more. "fail_on_recompile": where a compiled function would have to be compiled again,
    raise a CaptureError that names the guard. "eager_then_compile", "aot_eager_then_compile": the first call of a
    function runs uncompiled, the second compiles it, with symbols for the sizes that differ between the two.

    ``force_backend``, with the default stance: a backend, or an installed one's name, that compiles whatever is called
    meanwhile; all that was compiled is forgotten then, and again afterwards. ``skip_guard_eval_unsafe`` is taken and
    changes nothing: guards are always evaluated.
    """

    def __init__(
        self, stance: Stance = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None
    ) -> None:
        if stance not in get_args(Stance):
            raise ValueError(f"no stance {stance!r}; there are {', '.join(get_args(Stance))}")
        if force_backend is not None and stance != "default":
            raise RuntimeError(f"force_backend goes with the stance 'default', not with {stance!r}")
        self.stance: Stance = stance
        self._backend = load_backend(force_backend) if isinstance(force_backend, str) else force_backend
        self._previous = [_STANCE.change(stance, self._backend)]

    def __enter__(self) -> set_stance:
        if not self._previous:
            self._previous.append(_STANCE.change(self.stance, self._backend))
        return self

    def __exit__(self, *raised: object) -> None:
        _STANCE.change(*self._previous.pop())

    def __call__(self, fn: F) -> F:
        """``fn`` with this stance while it runs; the stance around it stays what it was."""
        self.__exit__()
        stance, backend = self.stance, self._backend

        @functools.wraps(fn)
        def with_stance(*args: Any, **kwargs: Any) -> Any:
            with set_stance(stance, force_backend=backend):
                return fn(*args, **kwargs)

        setattr(with_stance, SKIP_MARK, f"{fn} runs under set_stance({stance!r})")
        return with_stance  # type: ignore[return-value]


def _dims(tensor: torch.Tensor, dims: int | Sequence[int]) -> list[int]:
    """Counted from the first. TypeError for what is no tensor, IndexError for a dimension that it has not."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"dimensions are marked of a tensor, not of a {type(tensor).__name__}")
    count, chosen = tensor.dim(), (dims,) if isinstance(dims, int) else tuple(dims)
    for d in chosen:
        if not -count <= d < count:
            raise IndexError(f"the tensor has {count} dimensions, and none is {d}")
    return [d % count for d in chosen]


def mark_dynamic(
    tensor: torch.Tensor, dims: int | Sequence[int], *, min: int | None = None, max: int | None = None
) -> torch.Tensor:
    """Make these dimensions' sizes symbolic at the first capture already. Returns the tensor.

    ``min`` and ``max``: the sizes that occur; others are compiled on their own. IndexError for a dimension that the
    tensor has not.
    """
    known: dict[int, tuple[int | None, int | None]] = getattr(tensor, "_dynamo_capture_dynamic", {})
    tensor._dynamo_capture_dynamic = {**known, **dict.fromkeys(_dims(tensor, dims), (min, max))}  # type: ignore[attr-defined]
    return tensor


def mark_static(tensor: torch.Tensor, dims: int | Sequence[int] | None = None) -> torch.Tensor:
    """Keep these dimensions' sizes (None: all) as they are: another size is compiled on its own. Returns the tensor."""
    chosen = _dims(tensor, range(tensor.dim()) if dims is None else dims)
    known: frozenset[int] = getattr(tensor, "_dynamo_capture_static", frozenset())
    tensor._dynamo_capture_static = known | frozenset(chosen)  # type: ignore[attr-defined]
    return tensor
