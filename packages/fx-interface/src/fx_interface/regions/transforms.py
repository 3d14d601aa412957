"""Function transforms: derivatives of a sub-graph, and a sub-graph mapped over a dimension of its arguments.

Run as they are, they open a level of torch's dispatcher, which wraps the tensors of the sub-graph: operators record
derivatives, or treat one dimension as absent, one level down. So transforms nest in any order, and the operators that
arrive below are plain ones. The semantics are ``torch.func``'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.autograd import forward_ad

from fx_interface.dialects.dialect import broken
from fx_interface.regions.region import RegionCall, code_of, region, results_of

Body = Callable[..., Sequence[Any]]
_levels: Any = torch._C._functorch


def _check_gradient(call: RegionCall) -> None:
    (body,) = call.bodies
    count, seeds = call.node.kwargs.get("wrt"), call.node.kwargs.get("seeds", 0)
    if (
        not isinstance(count, int)
        or not isinstance(seeds, int)
        or not 0 < count <= len(call.arguments) - seeds
    ):
        broken("FXI113", call.node, f"wrt={count!r} and seeds={seeds!r} of {len(call.arguments)} arguments")
    if len(results_of(body)) < max(seeds, 1):
        broken("FXI113", call.node, "the sub-graph returns too little to differentiate")


@region("gradient", parts=("gradient_body",), check=_check_gradient)
def gradient(body: Body, *args: Any, wrt: int, seeds: int = 0) -> tuple[Any, ...]:
    """The gradients of the first result of ``body(*args)``, a scalar, with respect to the first ``wrt`` arguments, and
    then all results of ``body``. Zeros for an argument that the result does not depend on.

    With ``seeds`` so many arguments follow the first ``wrt``, which ``body`` does not take: what the gradients of as
    many first results, of any shape, are multiplied with.
    """
    with _level(_levels._grad_increment_nesting, _levels._grad_decrement_nesting) as level:
        with torch.enable_grad(), _requires_grad_allowed():
            leaves = [_levels._wrap_for_grad(arg, level).requires_grad_() for arg in args[:wrt]]
            given = [_wrapped(arg, level) for arg in args[wrt:]]
            results = list(code_of(body)(*leaves, *given[seeds:]))
            found = _gradients(
                results[: max(seeds, 1)], given[:seeds] or [torch.ones_like(results[0])], leaves
            )
        return tuple(_unwrapped(value, level) for value in (*found, *results))


def _gradients(
    values: list[torch.Tensor], seeds: list[torch.Tensor], leaves: list[torch.Tensor]
) -> list[torch.Tensor]:
    pairs = [(value, seed) for value, seed in zip(values, seeds, strict=True) if value.requires_grad]
    if not pairs:
        return [torch.zeros_like(leaf) for leaf in leaves]
    with torch.autograd.set_multithreading_enabled(False):
        # The engine itself: torch.autograd.grad imports torch's symbolic shapes to check what holds by construction.
        found = torch.autograd.Variable._execution_engine.run_backward(
            tuple(value for value, _ in pairs),
            tuple(seed for _, seed in pairs),
            True,
            True,
            tuple(leaves),
            allow_unreachable=True,
            accumulate_grad=False,
        )
    return [torch.zeros_like(leaf) if one is None else one for leaf, one in zip(leaves, found, strict=True)]


def _check_pushed(call: RegionCall) -> None:
    (body,) = call.bodies
    count, results = call.node.kwargs.get("wrt"), call.node.kwargs.get("results")
    if not isinstance(count, int) or not 0 < 2 * count <= len(call.arguments):
        broken("FXI113", call.node, f"wrt={count!r} of {len(call.arguments)} arguments")
    given = results_of(body)
    if not isinstance(results, int) or not 0 < results <= len(given):
        broken("FXI113", call.node, f"results={results!r} of {len(given)} of the sub-graph")
    call.takes(body, (*call.arguments[:count], *call.arguments[2 * count :]))


@region("pushed", parts=("pushed_body",), check=_check_pushed)
def pushed(body: Body, *args: Any, wrt: int, results: int) -> tuple[Any, ...]:
    """How the first ``results`` results of ``body`` change when its first ``wrt`` arguments change by the ``wrt`` that
    follow them (derivatives in forward direction), and then all its results.

    ``body`` takes the first ``wrt`` arguments and those behind the second ``wrt``. Zeros for a result that does not
    depend on what changes.
    """
    with _level(_levels._jvp_increment_nesting, _levels._jvp_decrement_nesting) as level:
        found = _pushed(body, args, wrt, level)
        changes = [torch.zeros_like(value) if change is None else change for value, change in found[:results]]
        return tuple(_unwrapped(value, level) for value in (*changes, *(value for value, _ in found)))


def moving(body: Body, *args: Any, wrt: int, results: int) -> tuple[bool, ...]:
    """Which of the first ``results`` results of ``body`` torch gives a change, where ``pushed`` gives zeros for the
    others. Arguments as of ``pushed``."""
    with _level(_levels._jvp_increment_nesting, _levels._jvp_decrement_nesting) as level:
        return tuple(change is not None for _, change in _pushed(body, args, wrt, level)[:results])


def _pushed(body: Body, args: Sequence[Any], wrt: int, level: int) -> list[tuple[Any, torch.Tensor | None]]:
    """Each result of ``body``, and its change if it has one."""
    with _forward_derivatives(), _dual_level():
        pairs = zip(args[:wrt], args[wrt : 2 * wrt], strict=True)
        duals = [torch._VF._make_dual(primal, change, level=0) for primal, change in pairs]
        given = [_wrapped(arg, level) for arg in args[2 * wrt :]]
        return [
            _unpacked(value) if isinstance(value, torch.Tensor) else (value, None)
            for value in code_of(body)(*duals, *given)
        ]


def _unpacked(value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
    made: Any = torch._VF._unpack_dual(value, level=0)
    return made[0], made[1]


@contextmanager
def _forward_derivatives() -> Iterator[None]:
    before = torch._C._is_fwd_grad_enabled()
    torch._C._set_fwd_grad_enabled(True)
    try:
        yield
    finally:
        torch._C._set_fwd_grad_enabled(before)


@contextmanager
def _dual_level() -> Iterator[None]:
    """Torch's level of dual tensors: there is one, which nested derivatives share, told apart by their wrappers."""
    if forward_ad._current_level >= 0:
        yield
        return
    level = torch._C._enter_dual_level()
    forward_ad._current_level = level
    try:
        yield
    finally:
        torch._C._exit_dual_level(level=level)
        forward_ad._current_level = level - 1


def _check_mapped(call: RegionCall) -> None:
    (body,) = call.bodies
    in_dims, out_dims = call.node.kwargs.get("in_dims"), call.node.kwargs.get("out_dims")
    if not isinstance(in_dims, (tuple, list)) or len(in_dims) > len(call.arguments):
        broken("FXI113", call.node, f"in_dims={in_dims!r} for {len(call.arguments)} arguments")
    if not isinstance(out_dims, (tuple, list)) or len(out_dims) != len(results_of(body)):
        broken("FXI113", call.node, f"out_dims={out_dims!r} for {len(results_of(body))} results")


@region("mapped", parts=("mapped_body",), check=_check_mapped)
def mapped(
    body: Body,
    *args: Any,
    in_dims: Sequence[int],
    out_dims: Sequence[int | None],
    randomness: str = "error",
) -> tuple[Any, ...]:
    """``body`` for each slice of the first arguments along ``in_dims``; the other arguments are the same for all.

    The results are stacked along ``out_dims``, None for one that is the same for all slices. ``randomness`` is
    ``"error"``, ``"different"`` or ``"same"`` between slices.
    """
    count = args[0].size(in_dims[0])
    with _level(
        lambda: _levels._vmap_increment_nesting(count, randomness), _levels._vmap_decrement_nesting
    ) as level:
        sliced = [_levels._add_batch_dim(arg, dim, level) for arg, dim in zip(args, in_dims, strict=False)]
        results = code_of(body)(*sliced, *args[len(in_dims) :])
        return tuple(
            value if dim is None else _levels._remove_batch_dim(value, level, count, dim)
            for value, dim in zip(results, out_dims, strict=True)
        )


@contextmanager
def _level(push: Callable[[], int], pop: Callable[[], Any]) -> Iterator[int]:
    level = push()
    try:
        yield level
    finally:
        pop()


@contextmanager
def _requires_grad_allowed() -> Iterator[None]:
    before = _levels.get_inplace_requires_grad_allowed()
    _levels.set_inplace_requires_grad_allowed(True)
    try:
        yield
    finally:
        _levels.set_inplace_requires_grad_allowed(before)


def _wrapped(value: Any, level: int) -> Any:
    return _levels._wrap_for_grad(value, level) if isinstance(value, torch.Tensor) else value


def _unwrapped(value: Any, level: int) -> Any:
    return _levels._unwrap_for_grad(value, level) if isinstance(value, torch.Tensor) else value
