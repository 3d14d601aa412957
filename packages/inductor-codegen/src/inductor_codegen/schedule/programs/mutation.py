"""Functionalization's reverse: a result that is the new content of an input is written right into that input.

    buf = kernel(x); return buf  ->  kernel(x into x); return x      where buf is what x is to become

Only where nobody can tell: the input's old content is read nowhere later, the kernel reads it only where it writes, the
result is used for nothing else outside, and no later step may fail, so that a call that raises has changed nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.ir.attention.form import AttentionKernel
from inductor_codegen.ir.kernel import Access, Kernel
from inductor_codegen.ir.program import Allocate, Buffer, BufferRef, CallExtern, Output, RunKernel, Step, View
from inductor_codegen.ir.scalar import Apply
from inductor_codegen.ir.scatter import ScatterKernel
from inductor_codegen.ir.traverse import postorder, roots_of
from inductor_codegen.schedule.programs.liveness import in_place, last_uses


@dataclass(frozen=True, slots=True)
class _Target:
    """A buffer that may be replaced by the input that it is the new content of; ``position`` is its kernel's step."""

    name: str
    input: str
    position: int


def written_in_place(
    steps: list[Step],
    outputs: tuple[Output, ...],
    mutated: Mapping[int, Buffer],
    kernels: Mapping[str, Kernel],
    aliases: Mapping[str, set[str]],
) -> tuple[list[Step], tuple[Output, ...]]:
    """Steps and outputs, with inputs in the place of buffers where that is safe.

    ``mutated`` maps an output's position to the input whose new content it is.
    """
    if not mutated:
        return steps, outputs
    named = [output.name for output in outputs if isinstance(output, BufferRef)]
    allocated = {step.buffer.name: step.buffer for step in steps if isinstance(step, Allocate)}
    shared = {step.of for step in steps if isinstance(step, View)} | set().union(*aliases.values(), ())
    safe_from = _safe_from(steps, kernels)
    last = last_uses(steps, set(named), aliases)
    renamed: dict[str, str] = {}
    for place, given in mutated.items():
        output = outputs[place]
        if (
            not isinstance(output, BufferRef)
            or output.name not in allocated
            or given.name in renamed.values()
        ):
            continue
        target = _target(steps, output.name, given.name)
        alone = named.count(output.name) == 1 and given.name not in named
        unseen = not {output.name, given.name} & (shared | set(aliases))
        if (
            target is not None
            and alone
            and unseen
            and target.position >= safe_from
            and replace(allocated[output.name], name=given.name) == given
            and last.get(given.name, -1) <= target.position
            and _reads_where_it_writes(steps[target.position], target, kernels)
        ):
            renamed[output.name] = given.name
    return [made for step in steps for made in _renamed(step, renamed)], tuple(
        BufferRef(renamed.get(o.name, o.name)) if isinstance(o, BufferRef) else o for o in outputs
    )


def _target(steps: Sequence[Step], name: str, given: str) -> _Target | None:
    for position, step in enumerate(steps):
        if isinstance(step, RunKernel) and name in step.buffers:
            return _Target(name, given, position)
    return None


def _safe_from(steps: Sequence[Step], kernels: Mapping[str, Kernel]) -> int:
    """The first step behind all that may fail: library calls, and kernels that check indices."""
    for position in range(len(steps) - 1, -1, -1):
        step = steps[position]
        if isinstance(step, CallExtern):
            return position + 1
        if isinstance(step, RunKernel) and checks_indices(kernels[step.kernel]):
            return position + 1
    return 0


_CHECKING = frozenset(("wrap_index", "check_index", "floor_div", "trunc_div", "remainder", "fmod"))
"""Primitives that may report an error of the user's program: an index out of range, a division by zero."""


def checks_indices(kernel: Kernel) -> bool:
    """Whether a kernel may report an error of the user's program."""
    if isinstance(kernel, AttentionKernel | ScatterKernel):
        return True
    statements = [
        statement for step in kernel.passes for part in (step.points, step.row) for statement in part
    ]
    nodes = postorder(root for statement in statements for root in roots_of(statement))
    return any(isinstance(node, Apply) and node.op in _CHECKING for node in nodes)


def _reads_where_it_writes(step: Step, target: _Target, kernels: Mapping[str, Kernel]) -> bool:
    assert isinstance(step, RunKernel)
    kernel = kernels[step.kernel]
    parameters = dict(zip(step.buffers, kernel.buffers, strict=True))
    written, read = parameters[target.name], parameters.get(target.input)
    if written.access is not Access.WRITE:
        return False
    return read is None or (read.access is Access.READ and in_place(kernel, read, written))


def _renamed(step: Step, renamed: Mapping[str, str]) -> list[Step]:
    match step:
        case Allocate(buffer) if buffer.name in renamed:
            return []
        case RunKernel():
            return [replace(step, buffers=tuple(renamed.get(name, name) for name in step.buffers))]
    return [step]
