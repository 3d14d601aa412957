"""How much of a call's result is read, by which code is generated that meets an index out of range or not.

Generated code computes an element where it is read. Of ``x[index][:1] * 2`` it computes one, and does not see whether
the other places are there; eager, which computes all of ``x[index]``, refuses them. So who may fail has to be computed
in whole, and what its users read decides whether it is.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from torch._ops import OpOverload

from aot_autograd.recording.values import Value
from fx_interface.tensor_spec import TensorSpec

_LIKE: Final = """full_like zeros_like ones_like empty_like rand_like randn_like randint_like new_full new_zeros
    new_ones new_empty new_empty_strided"""
_FORMS: Final = frozenset(_LIKE.split())
"""Operators that ask tensors for their form."""
_REPLACING: Final = frozenset({"copy", "fill"})
"""Operators that ask their first tensor for its form."""
_VIEWS: Final = """slice select narrow split split_with_sizes unbind chunk unsafe_split unsafe_chunk diagonal as_strided
    unfold constant_pad_nd"""
_NARROWING: Final = frozenset(_VIEWS.split())
"""Operators whose result may lack elements of their first tensor."""
_CALLS: Final = """mm bmm addmm baddbmm addbmm mv addmv convolution scatter scatter_add scatter_reduce index_put
    _unsafe_index_put index_add index_copy index_reduce sort topk cumsum cumprod cummax cummin logcumsumexp"""
_AT_ONCE: Final = frozenset(_CALLS.split())
"""Operators that are computed in whole, whatever is read of them; attention is, too."""


def computed_in_whole(candidates: Iterable[Value], roots: Iterable[Any], live: Sequence[Value]) -> set[int]:
    """Which of the ``candidates`` are, by number, where the ``live`` values, in recorded order, are computed for
    the ``roots``."""
    users: dict[int, list[Value]] = {}
    for value in live:
        for operand in value.operands:
            users.setdefault(operand.number, []).append(value)
    whole = {value.number for value in roots if isinstance(value, Value)}
    for value in reversed(live):
        if value.number not in whole and _is_whole(value, users.get(value.number, ()), whole):
            whole.add(value.number)
    return {value.number for value in candidates if value.number in whole}


def _is_whole(value: Value, users: Iterable[Value], whole: Collection[int]) -> bool:
    """Whether all of a value is computed, for its ``users``; which of these are computed in whole is known."""
    reading = [user for user in users if _asks_for_content(user, value)]
    if reading and _is_computed_at_once(value):
        return True
    parts: list[Value] = []
    for user in reading:
        if user.number not in whole:
            continue
        if user.op is operator.getitem or (_name(user) in _NARROWING and not _shows_all(user, value)):
            parts.append(user)
        else:
            return True
    if isinstance(value.spec, (tuple, list)):
        return bool(parts) and (_name(value) not in _NARROWING or len(parts) >= len(value.spec))
    return bool(parts) and any(_cover(parts, dim, size) for dim, size in enumerate(value.spec.sizes))


def _name(value: Value) -> str:
    return value.op._opname.rstrip("_") if isinstance(value.op, OpOverload) else ""


def _is_computed_at_once(value: Value) -> bool:
    name = _name(value)
    return name in _AT_ONCE or "attention" in name


def _asks_for_content(user: Value, operand: Value) -> bool:
    name = _name(user)
    if name in _FORMS:
        return False
    return name not in _REPLACING or any(arg is operand for arg in user.args[1:])


def _shows_all(user: Value, operand: Value) -> bool:
    """Whether a view has as many elements as what it shows. Of several results each is asked about its place."""
    made, shown = user.spec, operand.spec
    if not isinstance(made, TensorSpec):
        return True
    return bool(_elements(made) == _elements(shown))


def _elements(spec: TensorSpec) -> Any:
    return math.prod(spec.sizes)


def _cover(parts: Iterable[Value], dim: int, size: Any) -> bool:
    """Whether slices and selections along a dimension show together all of it."""
    ends: dict[Any, Any] = {}
    starts: dict[int, set[Any]] = {}
    for part in parts:
        start, end, step = _interval(part, dim)
        if step == 1:
            ends[start] = end
        elif end is None or end == size:
            starts.setdefault(step, set()).add(start)
    place: Any = 0
    while place in ends:
        place = ends.pop(place)
        if place is None or place == size:
            return True
    return any(found.issuperset(range(step)) for step, found in starts.items())


def _interval(part: Value, dim: int) -> tuple[Any, Any, int]:
    """Where a slice or selection along this dimension begins, ends (None: with the dimension) and how it steps; nothing
    of other views."""
    operand = part.args[0]
    given: list[Any] = [*part.args[1:], *(0, None, None, 1)[len(part.args) - 1 :]]
    along, start, end, step = given
    if along not in (dim, dim - len(operand.spec.sizes)) or _name(part) not in ("select", "slice"):
        return 0, 0, 1
    if _name(part) == "select":
        return start, start + 1, 1
    return 0 if start is None else start, None if end == sys.maxsize else end, step
