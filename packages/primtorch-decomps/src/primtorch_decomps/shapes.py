"""Shape arithmetic over plain and symbolic sizes: broadcasting, dimension numbers, size inference, slices."""

from __future__ import annotations

from collections.abc import Sequence

from fx_interface.symbols import Expr, IntLike, Relation, ShapeEnv, floordiv, maximum, minimum, mod, product
from primtorch_decomps.errors import RuleMismatchError

Sizes = tuple[IntLike, ...]
_NO_END = 2**62
"""No size is so large: torch writes the largest integer for an end that is left out."""


def same(one: IntLike, other: IntLike, env: ShapeEnv) -> bool:
    """Whether two sizes are equal, asking ``env`` only where their forms do not tell."""
    if one is other:
        return True
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    return env.decide(Relation("==", one, other))


def required(one: IntLike, other: IntLike, env: ShapeEnv) -> bool:
    """As ``same``, for what the operator fails without: where only data tell, it is left to the operator to check."""
    if one is other:
        return True
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    return env.expect(Relation("==", one, other))


def required_at_most(one: IntLike, other: IntLike, env: ShapeEnv) -> bool:
    """As ``at_most``, for what an operator fails without: where only data tell, it is left to the operator to check."""
    if isinstance(one, int) and isinstance(other, int):
        return one <= other
    return one is other or env.expect(Relation("<=", one, other))


def required_within(index: Sizes, whole: Sizes, axis: int | None, env: ShapeEnv) -> bool:
    """Whether an index of as many dimensions is nowhere longer than ``whole``, but along ``axis``; or has no elements,
    which no kernel looks at."""
    fitting = (
        required_at_most(one, other, env)
        for dim, (one, other) in enumerate(zip(index, whole, strict=True))
        if dim != axis
    )
    return all(fitting) or same(product(index), 0, env)


def at_most(one: IntLike, other: IntLike, env: ShapeEnv) -> bool:
    """Whether ``one <= other``."""
    if isinstance(one, int) and isinstance(other, int):
        return one <= other
    return one is other or _divides_below(one, other, env) or env.decide(Relation("<=", one, other))


def has_empty_rows(sizes: Sizes, axis: int) -> bool:
    """Whether rows along ``axis`` have no elements: torch's kernels on a CPU check an index that picks them all the
    same, where nothing is read."""
    return any(isinstance(size, int) and size == 0 for dim, size in enumerate(sizes) if dim != axis)


def _divides_below(one: IntLike, other: IntLike, env: ShapeEnv) -> bool:
    """Whether ``other`` is surely a larger multiple of a positive ``one``, as s0*s1 is of s1."""
    low = env.bounds(one).low
    return low is not None and low > 0 and is_multiple(other, one, env)


def is_multiple(one: IntLike, other: IntLike, env: ShapeEnv) -> bool:
    """Whether ``one`` is surely ``other`` times something that is at least 2."""
    if other == 0 or mod(one, other) != 0:
        return False
    ratio = env.bounds(floordiv(one, other)).low
    return ratio is not None and ratio > 1


def below(one: IntLike, other: IntLike, env: ShapeEnv) -> bool:
    """Whether ``one < other``."""
    if isinstance(one, int) and isinstance(other, int):
        return one < other
    if one is other or _divides_below(other, one, env):
        return False
    return _divides_below(one, other, env) or env.decide(Relation("<", one, other))


def same_sizes(one: Sequence[IntLike], other: Sequence[IntLike], env: ShapeEnv) -> bool:
    """Whether two shapes are equal."""
    return len(one) == len(other) and all(same(a, b, env) for a, b in zip(one, other, strict=True))


def canonical_dim(dim: int, rank: int) -> int:
    """A dimension number counted from the front; a 0-dimensional tensor counts as having one dimension."""
    limit = rank or 1
    if not -limit <= dim < limit:
        raise RuleMismatchError(f"dimension {dim} is out of range for {rank} dimensions")
    return dim + limit if dim < 0 else dim


def canonical_dims(
    dims: int | Sequence[int] | None, rank: int, *, empty_is_all: bool = True
) -> tuple[int, ...]:
    """Sorted dimension numbers; ``None`` (and an empty list, unless told otherwise) means all of them."""
    if dims is None or (empty_is_all and not isinstance(dims, int) and not len(dims)):
        return tuple(range(rank))
    found = tuple(canonical_dim(d, rank) for d in ([dims] if isinstance(dims, int) else dims))
    if len(set(found)) != len(found):
        raise RuleMismatchError(f"a dimension appears twice in {dims}")
    return tuple(sorted(found)) if rank else ()


def broadcast(shapes: Sequence[Sizes], env: ShapeEnv) -> Sizes:
    """The common shape of operands, aligned at the last dimension; size 1 stretches."""
    first = shapes[0]
    for other in shapes:
        if other is not first and other != first:
            break
    else:
        return first
    rank = max(map(len, shapes))
    result: list[IntLike] = [1] * rank
    for shape in shapes:
        offset = rank - len(shape)
        for axis, size in enumerate(shape, offset):
            result[axis] = _broadcast_size(result[axis], size, env)
    return tuple(result)


def _broadcast_size(one: IntLike, other: IntLike, env: ShapeEnv) -> IntLike:
    if one is other or (isinstance(other, int) and other == 1):
        return one
    if isinstance(one, int) and one == 1:
        return other
    if env.has_data and env.known(Relation("==", one, other)):
        return one
    if not isinstance(one, int) or not isinstance(other, int):
        for candidate, rest in ((one, other), (other, one)):
            unsettled = isinstance(candidate, Expr) and env.known(Relation("<", 1, candidate)) is None
            if unsettled and env.decide(Relation("==", candidate, 1)):
                return rest
    if not required(one, other, env):
        raise RuleMismatchError(f"sizes {one} and {other} do not broadcast")
    return one if isinstance(one, int) else other


def infer_size(sizes: Sequence[IntLike], numel: IntLike, env: ShapeEnv) -> Sizes:
    """``sizes`` with its one -1 replaced so that the number of elements is ``numel``."""
    unknown = [axis for axis, size in enumerate(sizes) if isinstance(size, int) and size == -1]
    if not unknown:
        if not required(product(sizes), numel, env):
            raise RuleMismatchError(f"shape {list(sizes)} does not hold {numel} elements")
        return tuple(sizes)
    known = product([size for axis, size in enumerate(sizes) if axis != unknown[0]])
    if len(unknown) > 1 or (isinstance(known, int) and known <= 0):
        raise RuleMismatchError(f"shape {list(sizes)} is ambiguous")
    divides = required if isinstance(known, int) else same
    if not divides(mod(numel, known), 0, env):
        raise RuleMismatchError(f"shape {list(sizes)} does not divide {numel} elements")
    result = list(sizes)
    result[unknown[0]] = floordiv(numel, known)
    return tuple(result)


def expand_sizes(sizes: Sizes, target: Sequence[IntLike], env: ShapeEnv) -> Sizes:
    """The shape that ``expand(target)`` gives: -1 keeps a size, size 1 stretches."""
    offset = len(target) - len(sizes)
    if offset < 0:
        raise RuleMismatchError(f"cannot expand {len(sizes)} dimensions to {len(target)}")
    result = list(target)
    for axis, size in enumerate(sizes, offset):
        wanted = target[axis]
        if isinstance(wanted, int) and wanted == -1:
            result[axis] = size
        elif not (isinstance(size, int) and size == 1) and not _keeps(size, wanted, env):
            raise RuleMismatchError(f"cannot expand size {size} to {wanted}")
    return tuple(result)


def _keeps(size: IntLike, wanted: IntLike, env: ShapeEnv) -> bool:
    """Whether ``size`` is what it is to be; one that cannot stretch is left to the operator where only data tell. To
    what is at most as large (``x[:n] = y`` of ``n`` rows) it could stretch from 1 to 0 alone."""
    cannot_stretch = (
        isinstance(size, int)
        or env.known(Relation("<", 1, size)) is True
        or env.known(Relation("<=", wanted, size)) is True
    )
    return required(size, wanted, env) if cannot_stretch else same(size, wanted, env)


def slice_bounds(
    size: IntLike, start: IntLike | None, end: IntLike | None, step: IntLike, env: ShapeEnv
) -> tuple[IntLike, IntLike, IntLike]:
    """Start, end and length of ``[start:end:step]`` on a dimension, clamped as Python clamps them."""
    if isinstance(end, int) and end >= _NO_END:
        end = None
    low = _clamp_index(0 if start is None else start, size, env)
    high = size if end is None else _clamp_index(end, size, env)
    by_data = _only_data_tells(low, size, env) or (end is not None and _only_data_tells(end, size, env))
    if by_data or _only_data_tells(low, high, env):
        length = maximum(high - low, 0)
        return low, low + length, length if step == 1 else floordiv(length + (step - 1), step)
    if not at_most(low, high, env):
        high = low
    length = high - low
    return low, high, length if step == 1 else floordiv(length + (step - 1), step)


def _clamp_index(index: IntLike, size: IntLike, env: ShapeEnv) -> IntLike:
    if isinstance(index, int) and isinstance(size, int):
        return min(max(index + size if index < 0 else index, 0), size)
    if isinstance(index, int) and index >= _NO_END:
        return size
    if _only_data_tells(0, index, env):
        return minimum(maximum(from_front(index, size), 0), size)
    if below(index, 0, env):
        index = index + size
        if _only_data_tells(index, 0, env):
            return maximum(index, 0)
        if below(index, 0, env):
            return 0
    if _only_data_tells(index, size, env):
        return minimum(index, size)
    return index if at_most(index, size, env) else size


def from_front(index: IntLike, size: IntLike) -> IntLike:
    """``index`` counted from the front, where only data tell whether it is negative."""
    return index + size * maximum(minimum(0 - index, 1), 0)


def _only_data_tells(one: IntLike, other: IntLike, env: ShapeEnv) -> bool:
    """Whether which of two is greater is known only when the program runs."""
    if isinstance(one, int) and isinstance(other, int):
        return False
    asked = Relation("<=", one, other)
    return env.is_from_data(asked) and env.known(asked) is None


def reduced_sizes(sizes: Sizes, dims: Sequence[int], keepdim: bool) -> Sizes:
    """The shape after reducing ``dims`` (canonical numbers)."""
    if keepdim:
        return tuple(1 if axis in dims else size for axis, size in enumerate(sizes))
    return tuple(size for axis, size in enumerate(sizes) if axis not in dims)


__all__ = [
    "Sizes",
    "at_most",
    "below",
    "broadcast",
    "canonical_dim",
    "canonical_dims",
    "expand_sizes",
    "infer_size",
    "is_multiple",
    "maximum",
    "minimum",
    "product",
    "reduced_sizes",
    "required",
    "same",
    "same_sizes",
    "slice_bounds",
]
