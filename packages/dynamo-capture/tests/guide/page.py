"""Writes docs/capture.md: one small program on its way through the capture layer, with what each stage makes of it.

    python packages/dynamo-capture/tests/guide/page.py           # prints the page
    python packages/dynamo-capture/tests/guide/page.py --write

Everything between the paragraphs is what the stages really gave when the page was written.
"""

from __future__ import annotations

import contextlib
import dis
import functools
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
    if isinstance(value, functools.partial):
        given = [*map(said, value.args), *(f"{name}={said(item)}" for name, item in value.keywords.items())]
        return f"{value.func.__qualname__} of {', '.join(given)}"
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

Capture turns the bytecode of a Python function into three things: a **graph** of its operations on tensors,
**guards** (conditions under which the graph is valid), and **replacement code**, which runs in the function's place
and calls the compiled graph.

This page follows one small program through the package `dynamo-capture`, folder by folder. Tables, graphs and
bytecode on this page are what the stages gave on CPython 3.11 with torch 2.13; a test runs the program again and
compares (`packages/dynamo-capture/tests/guide`).

| step | folders | takes | gives |
|---|---|---|---|
| notice the call | `hook/`, `driver/` | a frame that is about to run | the decision to capture it |
| interpret | `bytecode/`, `frames/`, `interpreter/`, `semantics/`, `values/` | its bytecode | what it does |
| record | `graph/` | operations on tensors | the graph |
| guard | `sources/`, `guard_kinds/` | what was read | conditions for using the result again |
| note effects | `side_effects/` | what was changed | a list of changes to make after the graph |
| write code | `codegen/`, `runtime/` | all of that | bytecode that runs in the function's place |

{state}

{program}

`program` reads an attribute, computes, and changes its argument in two ways. This captures it:
`optimize(backend)(program)(State(), torch.ones(3))`.

Imports between the folders go in one direction only ([decision 0071](decisions/0071-folders-in-one-order.md)), so
that each can be read knowing only those below it.

## The frame starts: `hook`, `driver`

CPython lets an extension evaluate frames in its own way (PEP 523). The frame hook (`csrc/eval_frame.c`) sees the
frame of `program` before its first instruction.

A code object has a list of *entries*: versions that were compiled earlier, each with its guards. The hook runs the
first entry whose guards hold. In the first call there is none, so it calls `driver.compile_frame`. That decides
whether this frame is captured at all (code of libraries that are left alone is not), and makes attempts. One
attempt is `driver.captured_frame`: interpret, call the backend, assemble the replacement code, build the guards. An
attempt that finds out that an assumption was wrong (a loop that should be left to Python, say) is dropped, and the
next one knows it.

## Its bytecode runs on values: `bytecode`, `frames`, `interpreter`, `semantics`, `values`

The function does not run. Its instructions are interpreted on *values*, which stand for the objects that Python would
have on its stack and in its variables:

- a `TensorValue` stands for the result of a node of the graph: shape and dtype are known, numbers are not;
- a `Const` stands for an object that is known;
- an `ObjectValue` stands for an object of a class of the program, together with its *source*: the path by which it
  was reached (`state.__dict__['seen']`).

`bytecode.decode` makes records of the instructions. `frames.steps` gives each its handler, a function in
`interpreter/opcodes/` that is registered under the instruction's name by `@opcode`. `frames.frame` calls the handlers
one after the other. For `program`:

{steps}

A handler moves values about; what the operation *means* is decided in `semantics`. There each question ("what does
calling this function give?") goes to a list of functions in a fixed order. The first that knows the answer gives it,
the others decline by returning None. The lists are in `semantics/calls/known_calls.py` and
`semantics/tensor_service.py`. In the program above:

- `state.scale` follows Python's order of attribute lookup (`semantics/attributes/`). The object that is found is
  wrapped as a value by `variable_builder/`;
- `x * 2.0` becomes a node of the graph (`semantics/tensors/`);
- `state.seen.append(y)` is a call of a method of a list (`semantics/calls/builtins/`).

## What is computed goes into the graph: `graph`

{graph}

The program returns the sum only. The second result is there because the program keeps `y` in `state.seen`, which must
hold a real tensor when the call is over.

## What was read is guarded: `sources`, `guard_kinds`

The graph above has the number 2.0 in it and is wrong for any other `state.scale`. So each part of capture that reads
something, and goes on in a way that depends on it, notes a guard. These are the guards on the arguments; others are
on torch's state, and on the classes and builtins that were looked at:

{guards}

The package `guards` builds them into one native evaluator. A later call asks it before it uses the entry.

## What was changed is noted: `side_effects`

The program's objects stay as they are while it is interpreted: a graph may fail to compile, and a call whose guards
hold must make the same changes without being interpreted. The new `state.calls` is kept in the *value* that stands
for `state`, and `side_effects.effects` lists the two changes in order: set the attribute, extend the list. They are
made on the real objects when the graph has run.

## Replacement code: `codegen`, `runtime`

`codegen.assembly` writes the bytecode that runs in the program's place. It has four parts:

1. read what the later parts need of the arguments (here the list `state.seen`);
2. call the compiled graph;
3. make the changes (`codegen.replay`, which calls functions of `runtime`);
4. make the result (`codegen.reconstruct`): here the first result of the graph.

{replacement}

The instructions from `PUSH_EXC_INFO` to the first `RETURN_VALUE` run only if the graph raises. Nothing has been
changed then, so that the function can run once more as it was written, in Python, and raises what it raises there.
After the call the state is

{after}

The guards of this entry do not hold in the next call, because `state.calls` is no longer 0. So the function is
captured again. An integer that has been seen with two values is now taken to vary: it becomes a symbol
(`session.specialization`), and this second entry serves all later calls.

## Where the graph has to end

{broken}

`print` cannot be part of a graph: it must happen in every call, and it needs the number that `item()` gives. This is
a *graph break*; each kind has a code, here {stopped}, and an entry in the [catalogue](graph-breaks.md). The graph
ends before the call of `print`:

{first}

The replacement code restores the stack and the variables as they are at that point, and executes the one instruction
that could not be captured. Then it calls a *resume function* (`bytecode/resume/`): the rest of the bytecode, as a
function whose parameters are what the frame held, here {resume}. When the frame of the resume function starts the
hook sees it, and it is captured like any other:

{second}

## Where to add something

Tests are under `tests/`, in the folder of the same name.

{ways}
"""


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
