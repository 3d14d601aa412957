"""Parts of a program that data choose or repeat: ``torch.cond``, ``torch.while_loop``, and scans of slices.

Only what is chosen runs. Run as they are, they ask the condition and call the sub-graphs, and autograd records what
ran; arguments of what did not run have gradients of zero, not none, as with torch's operators.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from fx_interface.dialects.dialect import broken, same_spec
from fx_interface.graph import spec_of_node
from fx_interface.regions.region import RegionCall, code_of, region, results_of
from fx_interface.symbols import Expr, IntLike
from fx_interface.tensor_spec import TensorSpec, contiguous_strides

Body = Callable[..., Sequence[Any]]


def _chosen(call: RegionCall, name: str, among: tuple[Any, ...]) -> tuple[Any, ...]:
    """Those of the arguments ``among`` that a sub-graph gets, by the positions in an option."""
    positions = call.node.kwargs.get(name)
    if not isinstance(positions, (tuple, list)) or not all(
        isinstance(position, int) and 0 <= position < len(among) for position in positions
    ):
        broken("FXI113", call.node, f"{name}={positions!r} of {len(among)} arguments")
    return tuple(among[position] for position in positions)


def _is_condition(spec: Any) -> bool:
    return isinstance(spec, TensorSpec) and spec.dtype is torch.bool


def _check_conditional(call: RegionCall) -> None:
    on_true, on_false = call.bodies
    if not call.arguments or not _is_condition(spec_of_node(call.arguments[0])):
        broken("FXI113", call.node, "the first argument is no tensor of bools")
    args = call.arguments[1:]
    call.takes(on_true, _chosen(call, "true_args", args), "the sub-graph for True")
    call.takes(on_false, _chosen(call, "false_args", args), "the sub-graph for False")
    for body in call.bodies:
        _check_branch(call, results_of(body))


def _check_branch(call: RegionCall, results: tuple[Any, ...]) -> None:
    """A branch gives what the call says, whose sizes may be symbols where those of the branches differ."""
    promised = spec_of_node(call.node)
    if isinstance(promised, tuple) and len(promised) == len(results):
        results = tuple(_as_promised(found, wanted) for found, wanted in zip(results, promised, strict=True))
    call.gives(results)


def _as_promised(found: Any, promised: Any) -> Any:
    if not isinstance(found, TensorSpec) or not isinstance(promised, TensorSpec):
        return found
    if len(found.sizes) != len(promised.sizes) or found.strides != contiguous_strides(found.sizes):
        return found
    sizes = tuple(
        wanted if isinstance(wanted, Expr) and wanted.as_symbol is not None else size
        for size, wanted in zip(found.sizes, promised.sizes, strict=True)
    )
    return replace(found, sizes=sizes, strides=contiguous_strides(sizes))


@region("conditional", parts=("cond_true", "cond_false"), check=_check_conditional)
def conditional(
    on_true: Body,
    on_false: Body,
    condition: torch.Tensor,
    *args: Any,
    true_args: Sequence[int],
    false_args: Sequence[int],
) -> Sequence[Any]:
    """``on_true`` or ``on_false`` of those arguments whose positions ``true_args`` or ``false_args`` name.

    ``condition`` is a tensor of one bool. Results are new tensors of the same form in both cases, but for sizes that
    are symbols of their own; the differentiable ones require grad if any argument does.
    """
    body, positions = (on_true, true_args) if bool(condition) else (on_false, false_args)
    results = tuple(code_of(body)(*(args[position] for position in positions)))
    return _differentiable(results, args, positions)


def _check_loop(call: RegionCall) -> None:
    condition, body = call.bodies
    count = call.node.kwargs.get("carried")
    if not isinstance(count, int) or not 0 < count <= len(call.arguments):
        broken("FXI113", call.node, f"carried={count!r} of {len(call.arguments)} arguments")
    carried, others = call.arguments[:count], call.arguments[count:]
    call.takes(condition, (*carried, *_chosen(call, "condition_args", others)), "the condition")
    call.takes(body, (*carried, *_chosen(call, "body_args", others)), "the sub-graph")
    asked = results_of(condition)
    if len(asked) != 1 or not _is_condition(asked[0]):
        broken("FXI113", call.node, f"the condition returns {asked}, not one tensor of bools")
    if not same_spec(results_of(body), tuple(spec_of_node(value) for value in carried)):
        broken("FXI113", call.node, "the sub-graph returns something else than is carried")
    call.gives(results_of(body))


@region("loop", parts=("loop_condition", "loop_body"), check=_check_loop)
def loop(
    condition: Body,
    body: Body,
    *args: Any,
    carried: int,
    condition_args: Sequence[int],
    body_args: Sequence[int],
) -> Sequence[Any]:
    """What is left of the first ``carried`` arguments when ``body`` has replaced them as long as ``condition`` of them
    holds.

    Both get, behind what is carried, the further arguments whose positions ``condition_args`` and ``body_args`` name.
    Results are new tensors; those that are differentiable require grad if any argument does.
    """
    first, others = args[:carried], args[carried:]
    asked = [others[position] for position in condition_args]
    given = [others[position] for position in body_args]
    holds, step = code_of(condition), code_of(body)
    values = tuple(first)
    used: Sequence[int] = range(carried)
    while bool(holds(*values, *asked)[0]):
        values = tuple(step(*values, *given))
        used = (*range(carried), *(carried + position for position in body_args))
    values = tuple(value.clone() if any(value is one for one in first) else value for value in values)
    return _differentiable(values, args, used)


def _check_scan(call: RegionCall) -> None:
    (body,) = call.bodies
    carried, sliced = (call.node.kwargs.get(name) for name in ("carried", "sliced"))
    if not (isinstance(carried, int) and isinstance(sliced, int)) or carried < 0 or sliced < 1:
        broken("FXI113", call.node, f"carried={carried!r}, sliced={sliced!r}")
    if carried + sliced > len(call.arguments):
        broken("FXI113", call.node, f"{carried} + {sliced} of {len(call.arguments)} arguments")
    specs = [spec_of_node(value) for value in call.arguments[carried : carried + sliced]]
    if not all(isinstance(spec, TensorSpec) and spec.sizes for spec in specs):
        broken("FXI113", call.node, "what is sliced is no tensor with a dimension")
    first, others = call.arguments[:carried], call.arguments[carried + sliced :]
    call.takes(body, (*first, *(slice_of(spec) for spec in specs), *others))  # type: ignore[arg-type]
    found = results_of(body)
    if not same_spec(found[:carried], tuple(spec_of_node(value) for value in first)):
        broken("FXI113", call.node, "the sub-graph carries something else than it is given")
    length = specs[0].sizes[0]  # type: ignore[union-attr]
    call.gives((*found[:carried], *(stacked(spec, length) for spec in found[carried:])))


def slice_of(spec: TensorSpec) -> TensorSpec:
    """The form of ``tensor[0]``."""
    return replace(spec, sizes=spec.sizes[1:], strides=spec.strides[1:])


def stacked(spec: TensorSpec, length: IntLike) -> TensorSpec:
    """The form of ``length`` tensors of one form in one."""
    sizes = (length, *spec.sizes)
    return replace(spec, sizes=sizes, strides=contiguous_strides(sizes))


@region("scan", parts=("scan_body",), check=_check_scan)
def scan(body: Body, *args: Any, carried: int, sliced: int) -> Sequence[Any]:
    """What is left of the first ``carried`` arguments when ``body`` has replaced them once for each slice of the next
    ``sliced`` ones, and the further results of all calls, stacked.

    ``body`` gets what is carried, a slice of each, and the further arguments. There is at least one slice. Results are
    new tensors; those that are differentiable require grad if any argument does.
    """
    values = tuple(args[:carried])
    whole, others = args[carried : carried + sliced], args[carried + sliced :]
    step = code_of(body)
    rows: list[tuple[Any, ...]] = []
    for position in range(whole[0].shape[0]):
        found = tuple(step(*values, *(tensor.select(0, position) for tensor in whole), *others))
        values, row = found[:carried], found[carried:]
        rows.append(row)
    results = (*values, *(torch.stack(column) for column in zip(*rows, strict=True)))
    return _differentiable(results, args, range(len(args)))


def _differentiable(results: tuple[Any, ...], args: Sequence[Any], used: Sequence[int]) -> tuple[Any, ...]:
    """The results with gradients of zero for the arguments that what ran did not use."""
    if not torch.is_grad_enabled():
        return results
    unused = [
        arg
        for position, arg in enumerate(args)
        if isinstance(arg, torch.Tensor) and arg.requires_grad and position not in used
    ]
    places = [place for place, value in enumerate(results) if value.is_floating_point() or value.is_complex()]
    lacking = any(not results[place].requires_grad for place in places)
    if lacking and not unused:
        unused = [arg for arg in args if isinstance(arg, torch.Tensor) and arg.requires_grad]
    if not places or not unused:
        return results
    made = iter(_Joined.apply(len(places), *(results[place] for place in places), *unused))  # type: ignore[no-untyped-call]
    return tuple(next(made) if place in places else value for place, value in enumerate(results))


class _Joined(torch.autograd.Function):
    """The first ``count`` tensors as they are, and zeros as the gradients of the others."""

    @staticmethod
    def forward(ctx: Any, count: int, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.forms = [(tensor.shape, tensor.dtype, tensor.device) for tensor in tensors[count:]]
        return tuple(tensor.detach() for tensor in tensors[:count])  # itself, it would be a view

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        zeros = (
            torch.zeros((), dtype=dtype, device=device).expand(shape) for shape, dtype, device in ctx.forms
        )
        return (None, *gradients, *zeros)
