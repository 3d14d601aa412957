"""A function with a derivative of its own (``torch.autograd.Function``): one sub-graph forward, one backward."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from fx_interface.dialects.dialect import broken
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.regions.region import RegionCall, code_of, region, results_of
from fx_interface.tensor_spec import TensorSpec, contiguous_strides

Body = Callable[..., Sequence[Any]]


def _check(call: RegionCall) -> None:
    forward, backward = call.bodies
    call.takes(forward, call.arguments, "the forward sub-graph")
    results = call.node.kwargs.get("results")
    given = results_of(forward)
    if not isinstance(results, int) or not 0 <= results <= len(given):
        broken("FXI113", call.node, f"results={results!r} of {len(given)} of the forward sub-graph")
    call.gives(given[:results])
    arriving = tuple(_gradient_spec(spec) for spec in given[:results])
    call.takes(backward, (*arriving, *given[results:]), "the backward sub-graph")
    saved = call.node.kwargs.get("saved")
    if saved is not None and not (isinstance(saved, int) and 0 <= saved <= len(given) - results):
        broken("FXI113", call.node, f"saved={saved!r} of {len(given) - results} values for the backward")
    returned = len(results_of(backward))
    if returned > len(call.arguments):
        broken("FXI113", call.node, f"{returned} gradients for {len(call.arguments)} arguments")


def _gradient_spec(spec: Any) -> Any:
    if not isinstance(spec, TensorSpec):
        return spec
    return TensorSpec(spec.sizes, contiguous_strides(spec.sizes), spec.dtype, spec.device)


@region("differentiable", parts=("forward_body", "backward_body"), check=_check)
def differentiable(
    forward: Body,
    backward: Body,
    *args: Any,
    results: int,
    dirty: tuple[int, ...] = (),
    non_differentiable: tuple[int, ...] = (),
    materialize: bool = True,
    once: bool = False,
    fails: str = "",
    saved: int | None = None,
    name: str = "Differentiable",
) -> Sequence[Any]:
    """The first ``results`` of ``forward(*args)``, differentiated by ``backward``.

    What ``forward`` returns behind them is for ``backward``, which takes one row-major gradient for each result and
    this, and returns a gradient or None for each of the first ``args``; the others have none. The first ``saved`` of it
    (all, if None) autograd saves: hooks see them, a backward is refused where one was overwritten, and a second one
    where they have been let go of. The rest is kept as it is, as attributes of a context are. ``dirty`` are the
    arguments that ``forward`` writes to, ``non_differentiable`` the results without gradient. Without ``materialize``
    no zeros are made for results that get no gradient, and a backward that gets none at all is not run. ``once``
    forbids second derivatives. ``fails``: what torch's RuntimeError says of the gradients that ``backward`` has
    returned; the sub-graph gives none then. ``name``: what torch calls the function where it names its node
    (``nameBackward``), in anomaly mode and in what it says of results that are written to.
    """
    call = _Call(
        code_of(forward), code_of(backward), results, dirty, non_differentiable, materialize, fails, saved
    )
    return _apply(name, once)(call, *args)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class _Call:
    """The static part of one call."""

    forward: Body
    backward: Body
    results: int
    dirty: tuple[int, ...]
    non_differentiable: tuple[int, ...]
    materialize: bool
    fails: str
    saved: int | None


class _Differentiable(torch.autograd.Function):
    """The call as torch's engine sees it."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *args: Any) -> tuple[Any, ...]:
        everything = tuple(call.forward(*args))
        results, needed = everything[: call.results], everything[call.results :]
        ctx.call = call
        count = len(needed) if call.saved is None else call.saved
        saved = [isinstance(value, torch.Tensor) and place < count for place, value in enumerate(needed)]
        ctx.places = saved
        ctx.others = [value for value, is_saved in zip(needed, saved, strict=True) if not is_saved]
        ctx.save_for_backward(*[value for value, is_saved in zip(needed, saved, strict=True) if is_saved])
        ctx.set_materialize_grads(False)  # ``_gradients`` makes zeros, where they are to be made
        ctx.forms = [_form(result) for result in results] if call.materialize else [None] * call.results
        if call.dirty:
            ctx.mark_dirty(*[args[index] for index in call.dirty])
        if call.non_differentiable:
            ctx.mark_non_differentiable(*[results[index] for index in call.non_differentiable])
        return results

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return _gradients(ctx, gradients)


class _DifferentiableOnce(_Differentiable):
    """The same, for a backward that is not to be differentiated."""

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Any) -> Any:
        return _gradients(ctx, gradients)


@functools.lru_cache(1024)
def _apply(name: str, once: bool) -> Any:
    """How a call is made whose node has that name, which torch takes from the class. The layer that Function.apply adds
    serves function transforms only."""
    base = _DifferentiableOnce if once else _Differentiable
    return super(torch.autograd.Function, type(name, (base,), {})).apply  # type: ignore[misc]


class _Derivatives(threading.local):
    """Of this thread. ``ended``: how many times the derivatives that it computes have been ended at some tensors."""

    ended = 0


_derivatives = _Derivatives()


@contextmanager
def ended_derivatives() -> Iterator[None]:
    """In this block no gradient at all means that the derivative has been ended before: no zeros are made for it, which
    would become NaN where the function's own derivative is infinite."""
    _derivatives.ended += 1
    try:
        yield
    finally:
        _derivatives.ended -= 1


def _form(result: Any) -> dict[str, Any] | None:
    """Of which form zeros are for a result."""
    if not isinstance(result, torch.Tensor):
        return None
    return {"size": result.shape, "dtype": result.dtype, "device": result.device}


def _arriving(gradient: Any, form: dict[str, Any] | None) -> Any:
    if isinstance(gradient, torch.Tensor):
        return gradient.contiguous()
    return None if form is None else torch.zeros(**form)


def _gradients(ctx: Any, gradients: Sequence[Any]) -> tuple[Any, ...]:
    call: _Call = ctx.call
    ends = not call.materialize or _derivatives.ended > 0
    if ends and all(gradient is None for gradient in gradients):
        return (None,) * (len(ctx.needs_input_grad))
    others = iter(ctx.others)
    tensors = iter(ctx.saved_tensors if any(ctx.places) else ())  # which a second backward is refused
    needed = [next(tensors if is_saved else others) for is_saved in ctx.places]
    arriving = [_arriving(gradient, form) for gradient, form in zip(gradients, ctx.forms, strict=True)]
    found = tuple(call.backward(*arriving, *needed))
    if call.fails:
        raise RuntimeError(call.fails)
    return (None, *found, *[None] * (len(ctx.needs_input_grad) - 1 - len(found)))
