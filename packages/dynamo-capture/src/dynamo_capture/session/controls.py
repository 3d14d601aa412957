"""What a user may say about capture from inside the program. Names and meanings are those of ``torch.compiler``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar, get_args

import torch

from dynamo_capture import _eval_frame
from dynamo_capture.hook.frame_hook import region

F = TypeVar("F", bound=Callable[..., Any])
Stance = Literal["default", "force_eager", "eager_on_recompile", "fail_on_recompile"]


SKIP_MARK = "__dynamo_capture_skip__"
"""The attribute of a function that must not be captured; its value says why."""
_CONSTANT_MARK = "__dynamo_capture_constant__"


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
    if found is None and getattr(function, "_torchdynamo_disable", False):
        named = getattr(function, "__qualname__", function)
        found = f"{named} is marked by torch.compiler.disable: {function._torchdynamo_disable_msg or ''}"
    return found


_ALLOWED: set[Any] = set()


def allow_in_graph(fn: Any) -> Any:
    """Make every call of ``fn`` one node: it is run, not looked into. It must be free of side effects.

    A list or tuple of functions is taken too.
    """
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(one) for one in fn]
    if not callable(fn):
        raise TypeError(f"allow_in_graph takes a function, not {fn!r}")
    _ALLOWED.add(fn)
    return fn


def is_allowed_in_graph(function: Any) -> bool:
    """Whether ``allow_in_graph`` was called on this function."""
    try:
        return function in _ALLOWED
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

    def change(self, stance: Stance) -> Stance:
        previous, self.current = self.current, stance
        _eval_frame.set_paused(stance == "force_eager")
        return previous


_STANCE = _StanceOwner()


def current_stance() -> Stance:
    """What ``set_stance`` said last."""
    return _STANCE.current


class set_stance:
    """How compiled functions behave from now on, in all threads; also a context manager and a decorator.

    "default": compile as needed. "force_eager": run everything uncompiled. "eager_on_recompile": use what is compiled
    where it fits, compile nothing more. "fail_on_recompile": where a compiled function would have to be compiled again,
    raise a CaptureError that names the guard.
    """

    def __init__(self, stance: Stance = "default") -> None:
        if stance not in get_args(Stance):
            raise ValueError(f"no stance {stance!r}; there are {', '.join(get_args(Stance))}")
        self.stance: Stance = stance
        self._previous = [_STANCE.change(stance)]

    def __enter__(self) -> set_stance:
        if not self._previous:
            self._previous.append(_STANCE.change(self.stance))
        return self

    def __exit__(self, *raised: object) -> None:
        _STANCE.change(self._previous.pop())

    def __call__(self, fn: F) -> F:
        """``fn`` with this stance while it runs; the stance around it stays what it was."""
        self.__exit__()
        stance = self.stance

        @functools.wraps(fn)
        def with_stance(*args: Any, **kwargs: Any) -> Any:
            with set_stance(stance):
                return fn(*args, **kwargs)

        setattr(with_stance, SKIP_MARK, f"{fn} runs under set_stance({stance!r})")
        return with_stance  # type: ignore[return-value]


def _dims(tensor: torch.Tensor, dims: int | Sequence[int]) -> Iterable[int]:
    return (d % tensor.dim() for d in ((dims,) if isinstance(dims, int) else dims))


def mark_dynamic(
    tensor: torch.Tensor, dims: int | Sequence[int], *, min: int | None = None, max: int | None = None
) -> torch.Tensor:
    """Make these dimensions' sizes symbolic at the first capture already. Returns the tensor.

    ``min`` and ``max``: the sizes that occur; others are compiled on their own.
    """
    known: dict[int, tuple[int | None, int | None]] = getattr(tensor, "_dynamo_capture_dynamic", {})
    tensor._dynamo_capture_dynamic = {**known, **dict.fromkeys(_dims(tensor, dims), (min, max))}  # type: ignore[attr-defined]
    return tensor


def mark_static(tensor: torch.Tensor, dims: int | Sequence[int] | None = None) -> torch.Tensor:
    """Keep these dimensions' sizes (None: all) as they are: another size is compiled on its own. Returns the tensor."""
    chosen = range(tensor.dim()) if dims is None else _dims(tensor, dims)
    known: frozenset[int] = getattr(tensor, "_dynamo_capture_static", frozenset())
    tensor._dynamo_capture_static = known | frozenset(chosen)  # type: ignore[attr-defined]
    return tensor
