"""What the user's program has told stock's compiler, as far as it holds for captures too.

Nothing is imported for it: where stock's compiler was never loaded, nobody has told it anything. A flag counts where it
has another value than the one that it comes with.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from types import MethodType
from typing import Any

COMES_WITH: dict[str, Any] = {
    "assume_static_by_default": True,
    "automatic_dynamic_shapes": True,
    "specialize_int": False,
    "specialize_float": False,
    "force_parameter_static_shapes": True,
    "recompile_limit": 8,
    "fail_on_recompile_limit_hit": False,
    "error_on_recompile": False,
    "suppress_errors": False,
    "disable": False,
    "ignore_logging_functions": frozenset(),
    "ignore_logger_methods": frozenset(),
}
"""The flags of ``torch._dynamo.config`` that are read here, and what each is if nobody sets it."""

_UNKNOWN = object()


def stock_setting(name: str, otherwise: Any) -> Any:
    """A flag of ``torch._dynamo.config``, or ``otherwise`` if the program has not changed it, or torch cannot say."""
    config = sys.modules.get("torch._dynamo.config")
    if config is None:
        return otherwise
    try:
        value = getattr(config, name, _UNKNOWN)
    except Exception:  # torch's Python answers, and reads builtins that the program may have replaced
        return otherwise
    return otherwise if value is _UNKNOWN or value == COMES_WITH[name] else value


def joins_equal_sizes() -> bool:
    """Whether sizes that are equal are taken to be equal for a reason: ``use_duck_shape`` of torch's configuration."""
    config = sys.modules.get("torch.fx.experimental._config")
    try:
        return bool(getattr(config, "use_duck_shape", True))
    except Exception:  # as above
        return True


def silenced_functions() -> frozenset[Any]:
    """The functions whose calls are left out of what is compiled."""
    ignored = (stock_setting(name, ()) for name in ("ignore_logging_functions", "ignore_logger_methods"))
    return frozenset().union(*ignored)


def stock_stance() -> tuple[str, Any]:
    """The stance that ``torch.compiler.set_stance`` has set, and the backend that it forces."""
    evaluation = sys.modules.get("torch._dynamo.eval_frame")
    stance = getattr(evaluation, "_stance", None)
    return getattr(stance, "stance", "default"), getattr(stance, "backend", None)


def in_stock_set(name: str, function: Any) -> bool:
    """Whether a function is in one of the sets of ``torch._dynamo.trace_rules`` that its decorators fill. They hold
    ids: a bound method, which is made when it is read, may have that of something that is gone."""
    if type(function) is MethodType:  # ``isinstance`` asks the object for ``__class__``
        return False
    rules = sys.modules.get("torch._dynamo.trace_rules")
    if rules is None:
        return False
    known: Collection[int] = getattr(getattr(rules, name, None), "function_ids", None) or ()
    return id(function) in known


def stock_sizes(own: dict[str, Any]) -> tuple[dict[int, tuple[int | None, int | None]], set[int]]:
    """What stock's marks say of a tensor, given its attributes: dimensions whose sizes are symbolic, with their bounds,
    and those whose sizes are constants."""
    marked: dict[int, tuple[int | None, int | None]] = {}
    for name in _DYNAMIC:
        marked.update(dict.fromkeys(own.get(name, ()), (None, None)))
    for bounds in own.get("_dynamo_dynamic_range", ()):
        marked[bounds.dim] = (bounds.min, bounds.max)
    return marked, set(own.get("_dynamo_static_indices", ()))


_DYNAMIC = (
    "_dynamo_dynamic_indices",
    "_dynamo_weak_dynamic_indices",
    "_dynamo_unbacked_indices",
    "_dynamo_strict_unbacked_indices",
)
"""The attributes that ``mark_dynamic``, ``maybe_mark_dynamic`` and ``mark_unbacked`` leave."""
