"""Writes docs/capture.md: one small program on its way through the capture layer, with what each stage makes of it.

    python packages/dynamo-capture/tests/guide/page.py           # prints the page
    python packages/dynamo-capture/tests/guide/page.py --write

Everything between the paragraphs is what the stages really gave when the page was written.
"""

from __future__ import annotations

import contextlib
import dis
import inspect
import io
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))

import program

from dynamo_capture import optimize
from dynamo_capture.frames.steps import prepare
from dynamo_capture.values import CALLED_BY_ITSELF, CALLED_WITH_SELF, NULL

PAGE = Path(__file__).parents[4] / "docs" / "capture.md"
HIDDEN = ("RESUME", "PRECALL", "PUSH_NULL")
OF_CALLS = {id(value) for value in (NULL, CALLED_BY_ITSELF, CALLED_WITH_SELF)}
"""Instructions, and what they leave beside the callable, that say nothing to a reader."""


class Run:
    """A captured call: the instructions that ran, the graphs, the replacements."""

    def __init__(self, function: FunctionType) -> None:
        self.steps: list[tuple[str, ...]] = []
        self.graphs: list[Any] = []
        self.state = program.State()
        captured = optimize(self._backend)(function)
        with self._watched(function.__code__), contextlib.redirect_stdout(io.StringIO()):
            captured(self.state, torch.ones(3))
        self.replacements = captured.__fxstack_capture__.report.replacements

    def _backend(self, graph_module: Any, inputs: Any) -> Any:
        self.graphs.append(graph_module)
        return graph_module.forward

    @contextlib.contextmanager
    def _watched(self, code: CodeType) -> Iterator[None]:
        """Note what each instruction of ``code`` leaves on the stack."""
        before = [(step, step.run) for step in prepare(code).steps]

        def noting(run: Callable[..., Any]) -> Callable[..., Any]:
            def watched(frame: Any, step: Any) -> Any:
                answer = run(frame, step)
                if step.opname not in HIDDEN:
                    stack = [value.describe() for value in frame.stack if id(value) not in OF_CALLS]
                    named = step.argval.describe() if hasattr(step.argval, "describe") else step.argval
                    self.steps.append((step.opname, "" if named is None else str(named), ", ".join(stack)))
                return answer

            return watched

        for step, run in before:
            step.run = noting(run)
        try:
            yield
        finally:
            for step, run in before:
                step.run = run


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(f"`{cell}`" if cell else "" for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def fenced(text: str, language: str = "") -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def guards_of(run: Run) -> str:
    """The guards that speak of the arguments: kind, what is read, what it must be."""
    rows = []
    for guard in run.replacements[0][1].guards:
        read = guard.source.expression
        if read.startswith(("state", "x")):
            wanted = getattr(guard, "expected", None)
            if wanted is None:
                wanted = f"{guard.dtype}, sizes {guard.sizes}, strides {guard.strides}"
            rows.append(
                (type(guard).__name__, read, wanted.__name__ if isinstance(wanted, type) else str(wanted))
            )
    return table(("guard", "reads", "must be"), rows)


def instructions(code: CodeType) -> str:
    """Bytecode as text, without what differs between runs."""
    lines = []
    for one in dis.get_instructions(code):
        if one.opname not in HIDDEN:
            text = f"    {one.opname:<22}{said(one.argval) if one.opname == 'LOAD_CONST' else one.argrepr}"
            lines.append(text.rstrip())
    return "\n".join(lines)


def said(value: Any) -> str:
    """A constant in a few words."""
    if isinstance(value, CodeType):
        return f"the code of {value.co_name}"
    if isinstance(value, dict):
        return "the globals of the program"
    if type(value).__name__ == "Fetcher":
        return "what reads state.__dict__['seen']"
    if isinstance(value, FunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    return "the compiled graph" if "GraphModule" in text else text


def page() -> str:
    whole, parted = Run(program.program), Run(program.broken)
    graph = str(whole.graphs[0].graph).strip()
    left, right = parted.replacements
    return TEXT.format(
        state=fenced(inspect.getsource(program.State), "python"),
        program=fenced(inspect.getsource(program.program), "python"),
        steps=table(("instruction", "argument", "stack after it"), whole.steps),
        graph=fenced(graph),
        guards=guards_of(whole),
        replacement=fenced(instructions(whole.replacements[0][1].code)),
        after=fenced(str(vars(whole.state))),
        broken=fenced(inspect.getsource(program.broken), "python"),
        stopped=f"`{left[1].stopped.code}`",
        first=fenced(str(parted.graphs[0].graph).strip()),
        second=fenced(str(parted.graphs[1].graph).strip()),
        ways="\n".join(["| what | where |", "|---|---|", *(f"| {what} | {where} |" for what, where in WAYS)]),
        resume=f"`{', '.join(right[0].co_varnames[: right[0].co_argcount])}`",
    )


WAYS = (
    (
        "a kind of graph break",
        "`foundation/break_kinds.py`: a constant with what was met, why, and what to change, of which "
        "`docs/graph-breaks.md` is made",
    ),
    ("an opcode", '`interpreter/opcodes/`: a function with `@opcode("NAME")` in the file of its family'),
    (
        "a builtin function, one of the standard library, or a method in C (`@handles(queue.SimpleQueue.put)`)",
        "`semantics/calls/builtins/` or `semantics/calls/library/`: a function with `@handles(function)`, which gets "
        "values (of a method the object first) and may decline by None; `semantics/calls/catalogue.py` names a new "
        "module",
    ),
    (
        "a function that is easier in Python",
        "`polyfills/python/` or `polyfills/torch/`: a function with `@substitutes(function)`; an `__init__` of "
        "`polyfills/` names a new module. Cases for it go into `tests/polyfills/test_polyfills.py`",
    ),
    (
        "who else is asked about a call of a known object, or about an operation on tensors",
        "`semantics/calls/known_calls.py`, `semantics/tensor_service.py`: a function in the list, which may decline",
    ),
    (
        "who else is asked about a method or an attribute of tensors",
        "`semantics/tensor_service.py`: a function in a list, which may decline",
    ),
    (
        "a method of tensors that the metadata answers",
        '`semantics/tensors/methods.py`: a function with `@method("name")`, which may decline by None: then it is an '
        "operation of the graph",
    ),
    ("a guard that only capture needs", "`guard_kinds/`: a class with `@fx_guards.guard_kind`"),
    (
        "a side effect of a call",
        "the function's handler gives the call to `tx.effects.deferred`, which makes it when the graph has run: where "
        "nothing that is followed can ask for what it has changed",
    ),
    (
        "a side effect on what the trace follows",
        "`side_effects/effects.py` notes it, `codegen/replay.py` carries it out",
    ),
    (
        "a kind of value",
        "`values/`: its class says what it is made of (`children`), what torch is given for it (`rebuilt`, `fake`, "
        "`argument`), and what an outcome depends on (`frozen`)",
    ),
    (
        "how existing objects of a class are read",
        "`variable_builder/`: a function with `@wraps_once(Class)`, or `@wraps(Class)` where each path has a value",
    ),
    ("how a new kind of value is made", "`codegen/makes/`: a function with `@makes(Value)`"),
)
"""What one may want to add, and where."""


TEXT = """\
# How a program is captured

This page follows one small program through the capture layer, folder by folder. The values between the paragraphs are
what the stages gave when the page was written; a test runs the program again and compares
(`packages/dynamo-capture/tests/guide`; CPython 3.11, torch 2.13).

{state}

{program}

`optimize(backend)(program)(State(), torch.ones(3))` captures it. The folders are named in the order in which they work;
in the source tree a folder imports only those that are below it
([decision 0071](decisions/0071-folders-in-one-order.md)).

## The frame starts: `hook`, `driver`

The frame hook (PEP 523, `csrc/eval_frame.c`) sees the frame of `program` before its first instruction. It asks the
guards of each entry that the code object has; there is none yet. So it calls `driver.compile_frame`, which decides
whether the frame is captured, and makes the attempts at it. One attempt is `driver.captured_frame`: interpret, call the
backend, assemble, guard.

## Its bytecode runs on values: `bytecode`, `frames`, `interpreter`, `semantics`, `values`

`bytecode.decode` makes records of the instructions, and `frames.steps` gives each its handler, found by its name in the
table that `@opcode` fills (`interpreter/opcodes`). `frames.frame` runs them, with a stack of values. A value stands for
what Python would have there: `TensorValue` for a node of the graph, `Const` for what is known, `ObjectValue` for an
object of the program's class, with the source it was read from. Nothing is computed on tensors.

{steps}

What an instruction means for values is said in `semantics`, where whoever may answer is asked in a declared order
and may decline (`semantics/calls/known_calls.py`, `semantics/tensor_service.py`): reading `state.scale` follows
Python's order of attribute lookup (`semantics/attributes`), `*` becomes a node (`semantics/tensors`), `append` is a
call of a method of a list (`semantics/calls/builtins`). Values of existing objects are made by `variable_builder`.

## What is computed goes into the graph: `graph`

{graph}

The second result is there because the program keeps it: `state.seen` has to hold a real tensor.

## What was read is guarded: `sources`, `guard_kinds`

Whoever reads something that decides what is captured notes a guard. These speak of the arguments (others of torch's
state, of the classes and of the builtins that were looked at):

{guards}

They are built into one native evaluator (package `guards`), which a call asks before it uses the entry.

## What was changed is noted: `side_effects`

While the program is interpreted, `state` is not touched: the new value of `state.calls` is an attribute of its value,
and `side_effects.effects` has, in order, the two changes. They are replayed when the graph has run.

## Replacement code: `codegen`, `runtime`

`codegen.assembly` writes the code that runs in the program's place: it reads what has to be read, calls the compiled
graph, replays the effects (`codegen.replay`, which calls functions of `runtime`), and makes the result
(`codegen.reconstruct`).

{replacement}

The part from `PUSH_EXC_INFO` on is where the frame runs once more as it was written, if the graph fails: nothing has
been changed then. After the call the state is

{after}

and its entry is not used again: `state.calls` is no longer 0. In the second call an integer that has had two values is
a symbol (`session.specialization`), and one entry is enough for all that follow.

## Where the graph has to end

{broken}

The number that `item()` gives is printed, so Python must have it: {stopped} in the [catalogue](graph-breaks.md). The
graph ends before the call of `print`,

{first}

the replacement code makes the stack and the variables as they were, runs the instruction, and calls a *resume function*
(`bytecode/resume/`): the rest of the bytecode as a function of what the frame held, here {resume}.
Its frame starts, the hook sees it, and it is captured like any other:

{second}

## Where to add something

A test stands in the folder of the same name under `tests/`.

{ways}
"""


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
