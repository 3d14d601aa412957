"""The referee: eager, with every floating-point operator run a second time in float64 beside it.

Below autograd, so backward passes are covered. Each storage that a floating-point tensor lies in has a float64 double;
views of one are views of the other, and a write to one is a write to the other. Integers, booleans, random numbers and
operators that torch cannot run in float64 are taken from the eager run, so that both follow the same path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils import _pytree as pytree

from fx_interface.execution.undo import random_states
from fx_interface.torch_internals.dispatch_mode import DispatchMode

_EXACT = {True: torch.complex128, False: torch.float64}
"""The dtype that stands in for a complex and for a real one."""


class Referee(DispatchMode):
    """While it is active, operators run in float64 too; ``exact`` reads what came out."""

    def __init__(self) -> None:
        super().__init__()
        self._doubles: dict[tuple[int, torch.dtype], Tensor] = {}
        self._kept: list[Any] = []  # storages stay alive, so that an address means one of them
        self.unreferred: set[str] = set()

    def exact(self, tensor: Tensor) -> Tensor:
        """The float64 (complex128) counterpart of ``tensor``; ``tensor`` itself if it has no rounding."""
        tensor = tensor.detach()
        if not _rounds(tensor):
            return tensor
        key = _key(tensor)
        if key not in self._doubles:
            self._adopt(tensor, tensor)
        return self._view(tensor)

    def dispatch(self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run ``func`` as it is, and on the doubles."""
        doubles = pytree.tree_map_only(Tensor, self.exact, (args, kwargs))
        may_draw = torch.Tag.nondeterministic_seeded in func.tags
        before = random_states() if may_draw else ()
        result = func(*args, **kwargs)
        # attention, say, draws only where it drops something
        has_generator = any(isinstance(x, torch.Generator) for x in pytree.tree_leaves((args, kwargs)))
        draws = may_draw and (has_generator or not all(map(torch.equal, before, random_states())))
        tensors = [t for t in pytree.tree_leaves(result) if isinstance(t, Tensor)]
        written = [t for t in pytree.tree_leaves(_written(func, args, kwargs)) if isinstance(t, Tensor)]
        if not any(_rounds(t) for t in (*tensors, *written)):
            return result
        exact = None if draws else self._run(func, doubles)
        if exact is None:
            for tensor in written:
                self._adopt(tensor, tensor)
        news = [None] * len(tensors) if exact is None else exact
        for tensor, new in zip(tensors, news, strict=True):
            if _rounds(tensor) and _key(tensor) not in self._doubles:
                self._adopt(tensor, tensor if new is None else new)
        return result

    def _run(self, func: OpOverload, doubles: Any) -> list[Tensor] | None:
        args, kwargs = pytree.tree_map_only(torch.dtype, _exact_dtype, doubles)
        run = _FORMULAS.get(func, func)
        try:
            return [t for t in pytree.tree_leaves(run(*args, **kwargs)) if isinstance(t, Tensor)]
        except (
            RuntimeError,
            NotImplementedError,
            TypeError,
            ValueError,
        ):  # no such kernel: eager's word counts
            self.unreferred.add(str(func))
            return None

    def _adopt(self, tensor: Tensor, values: Tensor) -> None:
        """The double of the storage of ``tensor``, whose elements are ``values``; all else as eager has it."""
        whole = _whole(tensor)
        key = _key(tensor)
        found = self._doubles.get(key)
        if found is None:
            self._kept.append(tensor.untyped_storage())
            found = self._doubles[key] = whole.to(_EXACT[tensor.dtype.is_complex], copy=True)
        target = self._view(tensor)
        if values.shape == target.shape:
            target.copy_(values)

    def _view(self, tensor: Tensor) -> Tensor:
        flat = self._doubles[_key(tensor)]
        view = flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        view = torch._conj(view) if tensor.is_conj() else view
        return torch._neg_view(view) if tensor.is_neg() else view


def _grouped_mm(
    a: Tensor, b: Tensor, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """Products of matrices in groups, which end at ``offs`` along the rows of ``a`` (M, K), the columns of ``b`` (K, N)
    or, where both have two dimensions, along K. What no group reaches is 0."""
    if offs is None:
        return a @ b
    ends = offs.tolist()
    groups = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    if a.ndim == 2 and b.ndim == 2:
        return torch.stack([a[:, group] @ b[group] for group in groups])
    made = a.new_zeros(a.shape[-2], b.shape[-1])
    for number, group in enumerate(groups):
        if a.ndim == 2:
            made[group] = a[group] @ b[number]
        else:
            made[:, group] = a[number] @ b[:, group]
    return made


_FORMULAS: Mapping[OpOverload, Callable[..., Any]] = {torch.ops.aten._grouped_mm.default: _grouped_mm}
"""What stands in for operators that torch cannot run in float64."""


def _rounds(tensor: Tensor) -> bool:
    return tensor.layout is torch.strided and (tensor.dtype.is_floating_point or tensor.dtype.is_complex)


def _key(tensor: Tensor) -> tuple[int, torch.dtype]:
    return tensor.untyped_storage()._cdata, tensor.dtype


def _whole(tensor: Tensor) -> Tensor:
    """The whole storage, flat."""
    count = tensor.untyped_storage().nbytes() // tensor.dtype.itemsize
    return tensor.detach().as_strided((count,), (1,), 0)


def _exact_dtype(dtype: torch.dtype) -> torch.dtype:
    return _EXACT[dtype.is_complex] if dtype.is_floating_point or dtype.is_complex else dtype


def _written(func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
    """The arguments that ``func`` writes to, by its schema."""
    found: list[Any] = []
    for position, declared in enumerate(func._schema.arguments):
        if declared.alias_info is not None and declared.alias_info.is_write:
            value = kwargs.get(declared.name, args[position] if position < len(args) else None)
            found.append(value)
    return found


def refereed(run: Callable[[], Any]) -> tuple[Any, Referee]:
    """What ``run`` returns, and the referee that watched it."""
    with Referee() as referee:
        return run(), referee
