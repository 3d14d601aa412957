"""Library calls that put something into a tensor write into the input whose new content they make.

    r = index_put(x, i, v); return r   ->   y = view of x; index_put_(y, i, v); return x     where r is x's new content

So a program that changes a few rows of a large tensor (a cache of keys) does not copy all of it twice. Only where
nobody can tell: the call alone reads the input, the result is used for nothing else outside, and no later step rejects
what tensors hold. A call may still fail for want of memory, and the program then runs again as it was written: these
operators overwrite, so that what is written twice is what is written once. The view has a count of writes of its own:
who runs the program counts the input's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import torch
from torch._ops import OpOverload

from fx_interface.symbols import Expr, Relation, ShapeEnv
from inductor_codegen.ir.kernel import Kernel
from inductor_codegen.ir.program import (
    Argument,
    Buffer,
    BufferRef,
    CallExtern,
    Output,
    RunKernel,
    Step,
    View,
)
from inductor_codegen.schedule.programs.liveness import reads
from inductor_codegen.schedule.programs.mutation import checks_indices

aten = torch.ops.aten

IN_PLACE: Final[Mapping[OpOverload, OpOverload]] = {
    aten.index_put.default: aten.index_put_.default,
    aten.index_copy.default: aten.index_copy_.default,
    aten.scatter.src: aten.scatter_.src,
    aten.masked_scatter.default: aten.masked_scatter_.default,
}
"""Operators that overwrite a part of their first argument, and how they do it in place."""

PARTS: Final = frozenset({aten.slice_scatter.default, aten.select_scatter.default})
"""Those that overwrite what is a view: it is copied there."""


def calls_in_place(
    steps: list[Step],
    outputs: tuple[Output, ...],
    mutated: Mapping[int, Buffer],
    kernels: Mapping[str, Kernel],
    buffers: Mapping[str, Buffer],
    aliases: Mapping[str, set[str]],
    in_order: bool,
    env: ShapeEnv,
) -> tuple[list[Step], tuple[Output, ...]]:
    """Steps and outputs, with such calls in place. ``mutated`` maps an output's position to the input whose new content
    it is; ``aliases``: results of calls, by name, that may lie in the memory of others; ``in_order``: the calls come as
    in the program."""
    if not mutated or not any(isinstance(step, CallExtern) and _overwrites(step.op) for step in steps):
        return steps, outputs
    named = [output.name for output in outputs if isinstance(output, BufferRef)]
    used = [name for step in steps for name in reads(step)]
    apart = set().union(*aliases.values(), aliases)
    given_of = {
        output.name: given
        for place, given in mutated.items()
        if isinstance(output := outputs[place], BufferRef) and named.count(output.name) == 1
    }
    made: list[Step] = []
    renamed: dict[str, str] = {}
    for position, step in enumerate(steps):
        given = _input_of(step, given_of)
        if (
            given is None
            or given.device.type != "cpu"
            or used.count(given.name) != 1
            or given.name in named
            or given.name in renamed.values()
            or apart & {given.name, _result(step).name}
            or replace(_result(step), name=given.name) != given
            or any(_rejects(later, kernels, buffers, in_order) for later in steps[position + 1 :])
            or (written := _written(step, given, buffers, env)) is None
        ):
            made.append(_with_names(step, renamed))
            continue
        made += written
        renamed[_result(step).name] = given.name
    outputs = tuple(
        BufferRef(renamed.get(o.name, o.name)) if isinstance(o, BufferRef) else o for o in outputs
    )
    return made, outputs


def _input_of(step: Step, given_of: Mapping[str, Buffer]) -> Buffer | None:
    """The input whose new content ``step`` makes of it; None for other steps."""
    if not isinstance(step, CallExtern) or not _overwrites(step.op) or len(step.results) != 1:
        return None
    result = step.results[0]
    given = None if result is None else given_of.get(result.name)
    if given is None or step.args[0] != BufferRef(given.name):
        return None
    accumulates = step.op is aten.index_put.default and (len(step.args) > 3 or step.kwargs)
    return None if accumulates and _accumulates(step) else given


def _accumulates(step: CallExtern) -> bool:
    return bool(step.args[3] if len(step.args) > 3 else dict(step.kwargs).get("accumulate", False))


def _result(step: Step) -> Buffer:
    assert isinstance(step, CallExtern)
    (result,) = step.results
    assert result is not None
    return result


def _overwrites(op: OpOverload) -> bool:
    return op in IN_PLACE or op in PARTS


def _written(step: Step, given: Buffer, buffers: Mapping[str, Buffer], env: ShapeEnv) -> list[Step] | None:
    """The steps in place of a call; None for places that are not sure to be those of a view."""
    assert isinstance(step, CallExtern)
    name = f"{given.name}_memory"
    while name in buffers:
        name += "_"
    if step.op in PARTS:
        view = _part(step, given, name, buffers, env)
        copied = (BufferRef(name), step.args[1])
        copy = CallExtern(aten.copy_.default, copied, (), (None,), step.where)
        return None if view is None else [view, copy]
    view = View(replace(given, name=name), given.name, 0)
    args = (BufferRef(name), *step.args[1:])
    return [view, CallExtern(IN_PLACE[step.op], args, step.kwargs, (None,), step.where)]


def _part(
    call: CallExtern, given: Buffer, name: str, buffers: Mapping[str, Buffer], env: ShapeEnv
) -> View | None:
    """The view of an input that ``slice_scatter`` or ``select_scatter`` overwrites."""
    _, source, *places = call.args
    if call.kwargs or not isinstance(source, BufferRef) or len(places) not in (2, 4):
        return None
    dim, start, *rest = places
    step = rest[1] if rest else 1
    if not isinstance(dim, int) or not isinstance(step, int) or isinstance(start, bool) or dim < 0:
        return None
    if not isinstance(start, int | Expr):
        return None
    sizes, strides = list(given.sizes), list(given.strides)
    offset = start * strides[dim]
    part = buffers[source.name].sizes
    if rest:
        if len(part) != len(sizes):
            return None
        last = start + (part[dim] - 1) * step
        sizes[dim], strides[dim] = part[dim], strides[dim] * step
    else:
        last = start
        del sizes[dim], strides[dim]
    is_inside = (Relation("<=", 0, start), Relation("<", last, given.sizes[dim]))
    if tuple(sizes) != part or not all(env.known(relation) for relation in is_inside):
        return None
    return View(Buffer(name, tuple(sizes), tuple(strides), given.dtype, given.device), given.name, offset)


def _rejects(
    step: Step, kernels: Mapping[str, Kernel], buffers: Mapping[str, Buffer], in_order: bool
) -> bool:
    """Whether a step may raise because of what is in its tensors, before the writes that come before it are done in
    the program. Where calls are ``in_order``, those that overwrite come after each other in the program, too."""
    match step:
        case RunKernel():
            return checks_indices(kernels[step.kernel])
        case CallExtern():
            name = step.op._schema.name
            exact = all(buffers[read].dtype.is_floating_point for read in reads(step))
            return (
                step.op.namespace != "aten"
                or not exact
                or not step.results
                or "linalg" in name
                or "cholesky" in name
            ) and not (in_order and _overwrites(step.op))
    return False


def _with_names(step: Step, names: Mapping[str, str]) -> Step:
    """The step, reading inputs where it reads what they have become."""
    if not names:
        return step
    match step:
        case RunKernel():
            return replace(step, buffers=tuple([names.get(name, name) for name in step.buffers]))
        case View() if step.of in names:
            return replace(step, of=names[step.of])
        case CallExtern():
            kwargs = tuple([(name, _renamed(arg, names)) for name, arg in step.kwargs])
            return replace(step, args=_all_renamed(step.args, names), kwargs=kwargs)
    return step


def _all_renamed(args: Sequence[Argument], names: Mapping[str, str]) -> tuple[Argument, ...]:
    return tuple([_renamed(arg, names) for arg in args])


def _renamed(arg: Argument, names: Mapping[str, str]) -> Argument:
    if isinstance(arg, BufferRef):
        return BufferRef(names.get(arg.name, arg.name))
    return _all_renamed(arg, names) if isinstance(arg, tuple) else arg
