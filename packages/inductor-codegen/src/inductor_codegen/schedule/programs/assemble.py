"""Assembling a program: units in order become steps, buffers are freed or reused as soon as they are dead."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeAlias

from fx_interface.errors import UnsupportedProgramError
from fx_interface.symbols import IntLike, ShapeEnv, product
from inductor_codegen.ir.kernel import Access, BufferParameter, Kernel
from inductor_codegen.ir.program import (
    Allocate,
    Argument,
    Buffer,
    BufferRef,
    CallExtern,
    FloatRef,
    Free,
    Output,
    Program,
    Reuse,
    RunKernel,
    Step,
    Storage,
    View,
    defined_by,
)
from inductor_codegen.lower.values import (
    ExternalCall,
    Lowered,
    LoweredOutput,
    Number,
    Placed,
    RuntimeFloat,
    Value,
)
from inductor_codegen.lower.views import Layout
from inductor_codegen.schedule.fusion.groups import Group, Grouping
from inductor_codegen.schedule.kernels.build import Launch, build_kernel, comments_of
from inductor_codegen.schedule.kernels.called import Called, is_idle
from inductor_codegen.schedule.programs.calls_in_place import calls_in_place
from inductor_codegen.schedule.programs.depthwise import depthwise_kernels
from inductor_codegen.schedule.programs.kernel_reuse import GroupKey
from inductor_codegen.schedule.programs.liveness import defines, in_place, last_uses, reads
from inductor_codegen.schedule.programs.mutation import written_in_place
from inductor_codegen.schedule.programs.scans import running, scan_kernels
from inductor_codegen.schedule.programs.scatters import scatter_kernels

Built = dict[Hashable, tuple[Launch, tuple[int, ...], tuple[int, ...]]]
"""Kernels by what they depend on, with the places of their buffers and floats among the group's."""

Rewrite: TypeAlias = Callable[
    [list[Step], dict[str, Kernel], Mapping[str, Buffer], frozenset[str]], list[Step]
]
"""Other steps for a program's, before memory is reused: given its kernels, to which it may add, its buffers by name and
the names of its results."""


def assemble(
    lowered: Lowered,
    grouping: Grouping,
    env: ShapeEnv,
    built: Built | None = None,
    rewrite: Rewrite | None = None,
) -> Program:
    """The program that runs the groups and library calls of ``lowered`` in the order of ``grouping``. ``built`` has
    kernels of other programs of one device without symbols, and gets this one's. ``rewrite`` is
    applied to its steps."""
    return _Assembler(lowered, grouping, env, {} if built is None else built, rewrite).run()


class _Assembler:
    def __init__(
        self, lowered: Lowered, grouping: Grouping, env: ShapeEnv, built: Built, rewrite: Rewrite | None
    ) -> None:
        self.lowered = lowered
        self.grouping = grouping
        self.env = env
        self.kernels: dict[str, Kernel] = {}
        self.built = built
        self.rewrite = rewrite
        self.steps: list[Step] = []
        self.views: dict[tuple[int, Layout], str] = {}
        self.aliases: dict[str, set[str]] = {}
        self.begun: set[str] = set()
        """Values that have memory since a part of them has."""
        self.taken = {value.name for value in lowered.values}

    def run(self) -> Program:
        for unit in self.grouping.order:
            group = self.grouping.groups.get(unit)
            if group is None:
                self._call(self.lowered.calls[unit])
            else:
                self._launch(group)
        outputs = tuple(self._output(output) for output in self.lowered.outputs)
        if self.rewrite is not None:
            kept = frozenset(self._keeps(outputs))
            self.steps = self.rewrite(self.steps, self.kernels, self._buffers(), kept)
        written = self.lowered.mutated
        calls = [unit for unit in self.grouping.order if unit not in self.grouping.groups]
        in_order = calls == sorted(calls)
        self.steps, outputs = calls_in_place(
            self.steps, outputs, written, self.kernels, self._buffers(), self.aliases, in_order, self.env
        )
        self.steps, outputs = written_in_place(self.steps, outputs, written, self.kernels, self.aliases)
        steps = _reuse(self.steps, self._keeps(outputs), self.kernels, self.aliases)
        inputs = [given.name for given in self.lowered.inputs if isinstance(given, Buffer)]
        passing = [name for name in inputs if name in self.lowered.passing]
        steps = list(_freed(steps, self._keeps(outputs), passing, self.aliases))
        numbers = tuple(self.lowered.numbers.items())
        run = {step.kernel for step in steps if isinstance(step, RunKernel)}
        kernels = tuple(kernel for name, kernel in self.kernels.items() if name in run)
        draft = Program(tuple(self.lowered.inputs), kernels, tuple(steps), outputs, numbers)
        escaping = draft.escaping()
        final = tuple(
            Allocate(step.buffer, Storage.TENSOR if step.buffer.name in escaping else Storage.SCRATCH)
            if isinstance(step, Allocate)
            else step
            for step in steps
        )
        return replace(draft, steps=final)

    def _keeps(self, outputs: tuple[Output, ...]) -> set[str]:
        return {output.name for output in outputs if isinstance(output, BufferRef)}

    def _buffers(self) -> dict[str, Buffer]:
        given = [buffer for buffer in self.lowered.inputs if isinstance(buffer, Buffer)]
        made = [buffer for step in self.steps for buffer in defined_by(step)]
        return {buffer.name: buffer for buffer in (*given, *made)}

    def _launch(self, group: Group) -> None:
        stored = [self.lowered.values[number] for number in sorted(group.stored)]
        for value in stored:
            self._allocate(value)
        if all(_is_empty(value) for value in stored):
            return
        launch = self._build(group)
        self.kernels.setdefault(launch.kernel.name, launch.kernel)
        self.steps.append(
            RunKernel(launch.kernel.name, launch.buffers, launch.sizes, launch.floats, launch.where)
        )

    def _allocate(self, value: Value) -> None:
        """Memory for what a kernel stores: its own, or a place in another value's."""
        within = self.lowered.within.get(value.number)
        if within is None:
            self.steps.append(Allocate(_buffer(value), Storage.SCRATCH))
            return
        whole, offset = self.lowered.values[within[0]], within[1]
        if whole.name not in self.begun:
            self.begun.add(whole.name)
            self.steps.append(Allocate(_buffer(whole), Storage.SCRATCH))
        self.steps.append(View(_buffer(value), whole.name, offset))

    def _build(self, group: Group) -> Launch:
        """The kernel of a group and its arguments; built once for all groups that compute the same."""
        known = GroupKey(group, self.lowered)
        found = self.built.get(known.key)
        if found is None:
            launch = build_kernel(group, self.lowered, self.env)
            numbers = {value.name: number for number, value in enumerate(known.values)}
            order = tuple(numbers[name] for name in launch.buffers)
            self.built[known.key] = launch, order, tuple(map(known.floats.index, launch.floats))
            return launch
        launch, order, floats = found
        names = tuple(known.values[number].name for number in order)
        where = self.lowered.values[max(group.members)].where
        given = tuple(known.floats[number] for number in floats)
        kernel = launch.kernel
        if kernel.name not in self.kernels:  # another program's
            kernel = replace(kernel, comments=comments_of(group, self.lowered))
        return Launch(kernel, names, launch.sizes, given, where)

    def _call(self, call: ExternalCall) -> None:
        if any(n is not None and self.lowered.values[n].name in self.begun for n in call.results):
            return  # its parts are there
        if call.op.namespace == "fx_interface" and self._attention(call):
            return
        if call.op.namespace == "aten":
            for kernels_of in (scatter_kernels, _running_totals, depthwise_kernels):
                if self._kernels(call, kernels_of(call, self.lowered, self.env)):
                    return
        args = tuple(self._argument(arg) for arg in call.args)
        kwargs = tuple((name, self._argument(arg)) for name, arg in call.kwargs)
        results = tuple(None if n is None else _buffer(self.lowered.values[n]) for n in call.results)
        step = CallExtern(call.op, args, kwargs, results, call.where, call.born)
        if call.aliases:
            for result in results:
                if result is not None:
                    self.aliases[result.name] = set(reads(step))
        self.steps.append(step)

    def _attention(self, call: ExternalCall) -> bool:
        """Kernels in place of a call of attention; whether there are any."""
        from inductor_codegen.schedule.attention.build import attention_kernels, refused

        try:
            made = attention_kernels(call, self.lowered, self.env)
        except UnsupportedProgramError as error:
            return refused(call, error)
        return self._kernels(call, made)

    def _kernels(self, call: ExternalCall, made: Sequence[Called]) -> bool:
        """Kernels in place of a call, if there are any."""
        if not made:
            return False
        for value in (self.lowered.values[number] for number in call.results if number is not None):
            self.steps.append(Allocate(_buffer(value), Storage.SCRATCH))
        for one in made:
            if one.between is not None:
                self.steps.append(Allocate(_buffer(one.between), Storage.SCRATCH))
            names = tuple(
                self._placed(held) if isinstance(held, Placed) else held.name for held in one.buffers
            )
            self.kernels.setdefault(one.kernel.name, one.kernel)
            self.steps.append(RunKernel(one.kernel.name, names, one.sizes, (), call.where))
        return True

    def _argument(self, arg: object) -> Argument:
        match arg:
            case Placed():
                return BufferRef(self._placed(arg))
            case tuple():
                return tuple(self._argument(item) for item in arg)
            case RuntimeFloat(name):
                return FloatRef(name)
        return arg  # type: ignore[return-value]

    def _placed(self, placed: Placed) -> str:
        value = self.lowered.values[placed.source]
        if placed.layout == value.layout:
            return value.name
        key = (placed.source, placed.layout)
        name = self.views.get(key)
        if name is None:
            name = self.views[key] = self._fresh(f"{value.name}_view")
            layout = placed.layout
            buffer = Buffer(name, layout.sizes, layout.strides, value.dtype, value.device)
            self.steps.append(View(buffer, value.name, layout.offset))
        return name

    def _fresh(self, stem: str) -> str:
        name, count = stem, 1
        while name in self.taken:
            count += 1
            name = f"{stem}{count}"
        self.taken.add(name)
        return name

    def _output(self, output: LoweredOutput) -> Output:
        match output:
            case Placed():
                return BufferRef(self._placed(output))
            case Number(value):
                return value  # type: ignore[return-value]
            case RuntimeFloat(name):
                return FloatRef(name)
        return None


def _buffer(value: Value) -> Buffer:
    return Buffer(value.name, value.sizes, value.strides, value.dtype, value.device)


def _is_empty(value: Value) -> bool:
    return any(isinstance(size, int) and size == 0 for size in value.sizes)


def _freed(
    steps: list[Step], kept: set[str], passing: Sequence[str], aliases: dict[str, set[str]]
) -> Iterator[Step]:
    """The steps with a ``Free`` after the last use of everything, views before what they are views of; of inputs, those
    that are ``passing``.
    """
    last = last_uses(steps, kept, aliases)
    gone = {step.of for step in steps if isinstance(step, Reuse)}
    due: dict[int, list[str]] = {}
    for name in passing:
        if name in last:
            due.setdefault(last[name], []).append(name)
    for step in steps:
        for name in defines(step):
            due.setdefault(last[name], []).append(name)
    for position, step in enumerate(steps):
        yield step
        for name in reversed(due.get(position, [])):
            if name not in gone:
                yield Free(name)


def _reuse(
    steps: list[Step],
    kept: set[str],
    kernels: dict[str, Kernel],
    aliases: dict[str, set[str]],
) -> list[Step]:
    """``Allocate`` replaced by ``Reuse`` where the kernel that follows reads a dying buffer only where it
    writes the new one.
    """
    last = last_uses(steps, kept, aliases)
    buffers = {
        buffer.name: buffer for step in steps for buffer in defined_by(step) if not isinstance(step, View)
    }
    shared = {step.of for step in steps if isinstance(step, View)} | {
        n for names in aliases.values() for n in names
    }
    shared |= set(aliases)
    made: dict[str, str] = {}

    @cache  # launches share kernels
    def fits(kernel: str, source: BufferParameter, target: BufferParameter) -> bool:
        return in_place(kernels[kernel], source, target)

    for position, step in enumerate(steps):
        if not isinstance(step, RunKernel):
            continue
        kernel = kernels[step.kernel]
        taken: set[str] = set()
        for target, parameter in zip(step.buffers, kernel.buffers, strict=True):
            if parameter.access is not Access.WRITE or target not in buffers:
                continue
            for source, other in zip(step.buffers, kernel.buffers, strict=True):
                if (
                    source in buffers
                    and other.access is Access.READ
                    and last[source] == position
                    and source not in shared
                    and source not in taken
                    and _same_memory(buffers[source], buffers[target])
                    and fits(step.kernel, other, parameter)
                ):
                    made[target] = source
                    taken.add(source)
                    break
    taken_over = (_taken_over(step, made) for step in steps)
    return [step for step in taken_over if not is_idle(step)]


def _taken_over(step: Step, made: dict[str, str]) -> Step:
    """A step after reuse was decided: the kernel that reads the old name is given the new one."""
    match step:
        case Allocate(buffer) if buffer.name in made:
            return Reuse(buffer, made[buffer.name])
        case RunKernel(kernel, buffers, sizes, floats, where):
            new = {made[name]: name for name in buffers if name in made}
            return RunKernel(kernel, tuple(new.get(name, name) for name in buffers), sizes, floats, where)
    return step


def _same_memory(one: Buffer, other: Buffer) -> bool:
    size: IntLike = product(one.sizes)
    return (
        one.dtype == other.dtype and one.device == other.device and size == product(other.sizes) and size != 0
    )


def _running_totals(call: ExternalCall, lowered: Lowered, env: ShapeEnv) -> list[Called]:
    """The kernel that does what a call does; none where torch's own has to."""
    found = running(call, lowered)
    if found is None:
        return []
    if found.result.device.type == "cpu":
        return scan_kernels(found, lowered, env)
    from inductor_codegen.schedule.programs.gpu_scans import gpu_scan_kernels  # which a CPU does not need

    return gpu_scan_kernels(found, env) if found.result.device.type == "cuda" else []
