"""More statements for ``statements.py``: files in memory, code that others call back, modes that generators hold,
lines that tracebacks show.

``HEADER`` is what they need beside the names that every program has.
"""

from __future__ import annotations

from collections.abc import Callable

from statement_scope import Scope

Block = Callable[[Scope], list[str]]

HEADER = """
import io, operator, sys, traceback

FILE, BYTES = io.StringIO(), io.BytesIO()

class Rows:
    def __init__(self, items, breaks):
        self.items, self.breaks = list(items), breaks
    def __iter__(self):
        return self
    def __next__(self):
        if self.breaks:
            brk()
        if not self.items:
            raise StopIteration
        return self.items.pop(0)
    def __len__(self):
        return brk(len(self.items))
    def __getitem__(self, place):
        LOG.append(place)
        return brk(self.items[place])
    def __contains__(self, item):
        return brk(item) in self.items
    def __bool__(self):
        return bool(brk(len(self.items)))

class Breaks:
    def __init__(self, swallows):
        self.swallows = swallows
    def __enter__(self):
        brk(); LOG.append("enters")
        return self
    def __exit__(self, kind, value, trace):
        LOG.append(kind and kind.__name__); brk()
        return self.swallows and kind is not None

def held(t, n):
    with torch.no_grad():
        yield t * 2
        brk(n)
        yield t + n

@torch.no_grad()
def without(t, n):
    for p in range(n + 1):
        yield t * p

def lines(error):
    return [entry.lineno for entry in traceback.extract_tb(error.__traceback__) if entry.filename == __file__]
"""


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def file(scope: Scope, block: Block) -> list[str]:
    """A file in memory is written, read or cut."""
    n, t = scope.number(), scope.tensor()
    return [
        scope.pick(
            f"FILE.write(str({n}))",
            f"print({n}, ({t}).shape, file=FILE)",
            f"print(brk({n}), file=FILE)",
            "LOG.append(FILE.tell())",
            "LOG.append(FILE.getvalue()[-5:])",
            "FILE.seek(0); LOG.append(FILE.readline()); FILE.seek(0, 2)",
            f"BYTES.write(bytes([{n} % 256]))",
            "LOG.append(len(BYTES.getbuffer()))",
            f"LOG.extend(map(str.strip, io.StringIO('a\\nb\\n' * ({n} % 3))))",
            "with contextlib.redirect_stdout(FILE): brk(); print('into the file')",
        )
    ]


def called_back(scope: Scope, block: Block) -> list[str]:
    """A break in a function that something else calls, or in a method that an operator or a builtin looks up."""
    a, items, n = scope.new("n"), scope.items(), scope.number()
    rows = f"Rows({items}, {scope.pick('True', 'False')})"
    text = scope.pick(
        f"len(sorted({items}, key=lambda p: brk(-p)))",
        f"functools.reduce(lambda p, r: brk(p + r), {items}, 0)",
        f"next(filter(lambda p: brk(p) > 0, {items}), 0)",
        f"sum(map(brk, {items}))",
        f"min({items}, key=brk, default=1)",
        f"collections.defaultdict(lambda: brk(2))[{n}]",
        f"sum({rows})",
        f"len(list({rows}))",
        f"len({rows})",
        f"1 if {n} in {rows} else 2",
        f"3 if {rows} else 4",
        f"{rows}[0] if {items} else 0",
        f"any(brk(p) for p in {rows})",
        f"sum(p for p in {rows} if brk(p))",
        f"len([brk(p) for p in {rows}])",
        f"operator.call(brk, {n})",
    )
    scope.numbers.append(a)
    return [f"{a} = int({text}) % 5"]


def guarded(scope: Scope, block: Block) -> list[str]:
    """A block under a manager that breaks the graph where it is entered and left, and may swallow what is raised."""
    raised = scope.pick(f"if {scope.condition()}: raise Own({scope.number()})", "pass", "tick()")
    manager = scope.pick(
        "Breaks(True)", "Breaks(True)", "Breaks(True), torch.no_grad()", "torch.no_grad(), Breaks(True)"
    )
    return [f"with {manager}:", *_indented([*block(scope.inside()), raised])]


def held_mode(scope: Scope, block: Block) -> list[str]:
    """A generator that has entered a mode, or is decorated by one, between its items."""
    it, t, u = scope.new("it"), scope.new("t"), scope.new("t")
    made = scope.pick(
        f"held({scope.tensor()}, {scope.number()})", f"without({scope.tensor()}, {scope.number()})"
    )
    lines = [f"{it} = {made}", f"{t} = next({it})", scope.pick("brk()", "pass", "tick()"), f"{u} = {t} + 1"]
    lines += [
        f"for {u} in {it}:",
        *_indented([scope.pick("tick()", "brk()"), f"LOG.append({u}.requires_grad)"]),
    ]
    scope.tensors += [t, u]
    return lines


def decorated(scope: Scope, block: Block) -> list[str]:
    """A function inside that a mode decorates."""
    f, t = scope.new("f"), scope.new("t")
    mode = scope.pick(
        "torch.no_grad()",
        "torch.enable_grad()",
        "torch.set_grad_enabled(False)",
        "torch.set_grad_enabled(True)",
        "torch.autocast('cpu', dtype=torch.bfloat16)",
        "torch.inference_mode(False)",
        "noted('decorated')",
    )
    lines = [f"@{mode}", f"def {f}(p):", *_indented([scope.pick("brk()", "tick()", "pass"), "return p * 2"])]
    lines.append(f"{t} = {f}({scope.tensor()}).float()")
    scope.tensors.append(t)
    return lines


def told(scope: Scope, block: Block) -> list[str]:
    """What the traceback of a caught exception says, after a break or before."""
    e = scope.new("e")
    raised = scope.pick(
        f"raise Own({scope.number()})", "1 / 0", "[][1]", f"brk(); raise Own({scope.number()})"
    )
    lines = ["try:", *_indented([*block(scope.inside()), *raised.split("; ")]), f"except Exception as {e}:"]
    tell = scope.pick(
        f"LOG.append(lines({e}))",
        f"brk(); LOG.append(lines({e}))",
        f"LOG.append({e}.__traceback__.tb_lineno)",
    )
    return [*lines, *_indented(tell.split("; "))]


def removed(scope: Scope, block: Block) -> list[str]:
    """A variable that is deleted, or not, before a break in a handler, and read after it."""
    n, e = scope.new("n"), scope.new("e")
    delete = scope.pick(f"del {n}", f"if {scope.condition()}: del {n}", f"{n} = {scope.number()}", "pass")
    rest = [delete, scope.pick("brk()", "tick()"), *block(scope.inside())]
    read = ["try:", f"    LOG.append({n})", f"except UnboundLocalError as {e}:", f"    LOG.append(str({e}))"]
    inside = scope.random.random() < 0.5
    lines = [f"{n} = {scope.number()}", "try:", f"    raise Own({scope.number()})", "except Own:"]
    return [*lines, *_indented([*rest, *(read if inside else [])]), *([] if inside else read)]


def grouped(scope: Scope, block: Block) -> list[str]:
    """Groups of exceptions, whose parts are handled by different blocks; what none of them takes goes on."""
    e, n = scope.new("e"), scope.number()
    raised = scope.pick(
        f"raise ExceptionGroup('drawn', [Own({n}), ValueError(brk({n}))])",
        f"raise ExceptionGroup('drawn', [ExceptionGroup('inner', [Own({n})]), Own({n})])",
        f"brk(); raise Own({n})",
        f"LOG.append(1 / ({n} % 2))",
        "pass",
    )
    first = scope.pick(
        f"LOG.append(len({e}.exceptions))", f"LOG.append(repr({e}))", f"brk(); LOG.append(brk({n}))"
    )
    return [
        "try:",
        *_indented([*block(scope.inside()), *raised.split("; ")]),
        f"except* Own as {e}:",
        *_indented(first.split("; ")),
        "except* (ValueError, ZeroDivisionError):",
        *_indented([scope.pick("brk()", "tick()", "LOG.append(repr(sys.exception()))")]),
        *scope.random.choice([["finally:", "    LOG.append('group')"], ["else:", "    brk()"], []]),
    ]


PLACES: list[tuple[Callable[[Scope, Block], list[str]], int]] = [
    (file, 3),
    (called_back, 4),
    (guarded, 2),
    (held_mode, 1),
    (decorated, 2),
    (told, 2),
    (removed, 2),
    (grouped, 2),
]
