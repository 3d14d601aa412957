"""More statements for ``statements.py``: binding, leaving blocks, driving generators, dropping objects, modules, match.

``HEADER`` is what they need beside the names that every program has.
"""

from __future__ import annotations

from collections.abc import Callable

from statement_scope import Scope

Block = Callable[[Scope], list[str]]

HEADER = """
import weakref
from torch.utils.checkpoint import checkpoint

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)
        self.register_buffer("runs", torch.zeros(()))
        self.seen = 0
    def forward(self, t, k=1):
        self.runs += 1
        self.seen = self.seen + k
        if k > 2:
            brk()
        return self.inner(t).tanh()

def echo(t):
    sent = None
    try:
        while True:
            try:
                sent = yield t if sent is None else t * sent
            except ValueError:
                LOG.append("thrown")
                sent = brk(2)
    finally:
        LOG.append("echo ends")

def chain(t, n):
    got = yield from echo(t + n)
    return got

NET = Net()
"""


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def bind(scope: Scope, block: Block) -> list[str]:
    """Targets of assignments other than one name."""
    a, b = scope.new("n"), scope.new("n")
    n, m, t = scope.number(), scope.number(), scope.pick(*scope.tensors)
    u = scope.new("t")
    forms: list[tuple[list[str], list[str], list[str]]] = [
        ([f"{a}, {b} = {n}, {m}"], [a, b], []),
        ([f"{a}, *{b} = [{n}, *{scope.items()}]", f"{b} = len({b})"], [a, b], []),
        ([f"{a} = {b} = {n}"], [a, b], []),
        ([f"BOX.n, {a} = {n} % 5, BOX.n"], [a], []),
        ([f"LOG.append(({a} := {n}) + {a})"], [a], []),
        ([f"{a} = ({b} := brk({n})) and {b} + 1 or 0"], [a, b], []),
        ([f"TABLE['k'], BOX.m = ({n}, brk({m}))", f"{a} = TABLE['k']"], [a], []),
        ([f"({a}, {u}), {b} = ({n}, {t} + 1), {m}"], [a, b], [u]),
        ([f"{a} = {n} if {scope.condition()} else brk({m})"], [a], []),
        ([f"{a} = {n}", f"{a} += brk({m})", f"{a} -= {n} // 2"], [a], []),
        ([f"{a} = -1", f"for {a}, {b} in [({n}, 1), ({m}, brk(2))]: tick()"], [a, b], []),
        ([f"{a} = 0 <= {n} < brk(3) <= {m} + 3"], [a], []),
        ([f"BOX.items[:1] = [{n}, brk({m})]", f"{a} = len(BOX.items)"], [a], []),
        ([f"{u} = {t}.clone()", f"{u}[{n} % 2 :, 0], {a} = 0.5, {m}"], [a], [u]),
        ([f"[*{u}] = {scope.items()}, {t}", f"{u} = {u}[1]"], [], [u]),
        ([f"LOG.append(f'{{brk({n})!r:>4}}|{{{m}}}')"], [], []),
        ([f"{a} = {{p: brk(p) for p in {scope.items()}}}", f"{a} = len({a})"], [a], []),
        ([f"{a} = len({{p + r for p in {scope.items()} for r in range(2) if brk(p) or r}})"], [a], []),
    ]
    lines, numbers, tensors = scope.random.choice(forms)
    scope.numbers += numbers
    scope.tensors += tensors
    return lines


def leave(scope: Scope, block: Block) -> list[str]:
    """A function inside that returns, raises or goes on from the middle of blocks."""
    name, result = scope.new("f"), scope.new("n")
    early = scope.pick(
        f"if {scope.condition()}: return p",
        f"if p > {scope.number()}: raise Own(p)",
        "if p == 1: return brk(p) or 5",
        f"for r in {scope.items()}:\n        if r == p: return r",
        "while p < 4:\n        p += 1\n        if p == 3: return brk(p)",
        "pass",
    ).split("\n")
    wrapped = scope.pick("try", "with", "for", "finally", "nested")
    manager = scope.pick("noted('left')", "torch.no_grad()", "Swallows(Own)", "contextlib.suppress(Own)")
    after = scope.pick("LOG.append(p)", "brk()", "p = brk(p)", "tick()")
    inside = _indented(early)
    match wrapped:
        case "try":
            body = ["try:", *inside, "except Own as e:", f"    {after}", "    return repr(e)"]
        case "with":
            body = [f"with {manager}:", *inside, f"    {after}"]
        case "for":
            body = ["for _ in range(2):", *inside, f"    {after}", "else:", "    LOG.append('else')"]
        case "finally":
            body = ["try:", *inside, "finally:", f"    {after}"]
        case _:
            body = ["try:", f"    with {manager}:", *_indented(inside), f"        {after}", "finally:"]
            body += ["    LOG.append('f')", "    brk()"]
    call = scope.pick("{f}({n})", "max(0, len(str({f}({n}))))", "[{f}(p) for p in (0, 1, 2)][-1]")
    text = call.format(f=name, n=scope.number())
    lines = [f"def {name}(p):", *_indented([*body, "return p"])]
    return [
        *lines,
        f"{result} = None",
        "try:",
        f"    {result} = {text}",
        "finally:",
        f"    LOG.append({result})",
    ]


def drive(scope: Scope, block: Block) -> list[str]:
    """A generator that is sent to, thrown into, closed or left alone; in functions that are called, always closed."""
    it, t = scope.new("it"), scope.new("t")
    source = scope.pick(f"echo({scope.tensor()})", f"chain({scope.tensor()}, {scope.number()})")
    steps = [f"{it} = {source}", f"{t} = next({it})"]
    choices = [
        f"{t} = {it}.send({scope.number()} + 1)",
        f"{t} = {t} + next({it})",
        f"{t} = {it}.throw(ValueError('drawn'))",
        "brk()",
        "LOG.append(tick())",
        f"{t} = {it}.send(brk(2))",
    ]
    steps += scope.random.choices(choices, k=scope.random.randint(1, 3))
    ends = [f"{it}.close()", "pass", f"del {it}", f"{it} = None", f"LOG.append(type({it}).__name__)"]
    steps.append(ends[0] if scope.is_called else scope.pick(*ends))
    scope.tensors.append(t)
    return steps


def drop(scope: Scope, block: Block) -> list[str]:
    """An object that a weak reference, its callback or a finalizer watches: when it dies is seen. Not in functions that
    are called: what they hold where a graph break leaves them may die later than in eager (docs/soundness.md)."""
    if scope.is_called:
        return bind(scope, block)
    box, ref, n = scope.new("b"), scope.new("r"), scope.number()
    watch, seen = scope.pick(
        (f"weakref.ref({box})", f"{ref}() is None"),
        (f"weakref.ref({box}, lambda r: LOG.append('gone'))", f"{ref}() is None"),
        (f"weakref.finalize({box}, LOG.append, 'final')", f"{ref}.alive"),
        (f"weakref.finalize({box}, brk, 'final')", scope.pick(f"{ref}()", f"{ref}.detach() is None")),
    )
    is_told = "LOG" in watch or "brk" in watch
    lines = [f"{box} = Box({n})", f"{ref} = {watch}"]
    lines += scope.pick(
        "pass",
        "brk()",
        f"{box} = None",
        f"del {box}",
        # what is overwritten dies at the end of the graph (docs/soundness.md), a circle when Python collects it
        "brk(); brk()" if is_told else f"BOX.other = {box}",
        "brk()" if is_told else f"{box}.items.append({box})",
        f"brk(); {box} = {box}.n; brk()",
        f"{box} = [{box}]; brk()",
    ).split("; ")
    return [*lines, *block(scope.inside()), f"LOG.append({seen})"]


def begin(scope: Scope, block: Block) -> list[str]:
    """Iterators of itertools that are begun, stand across what follows, and are then used up. Neither returned nor
    asked for their class: those that were begun inside are generators then (docs/soundness.md)."""
    one, two = scope.new("i"), scope.new("j")
    items, more = scope.items(), scope.items()
    source = scope.pick(
        f"itertools.tee({items})",
        f"itertools.tee(brk(p) for p in {items})",
        f"itertools.chain({items}, {more}), iter({more})",
        f"itertools.islice({items}, 1, None), itertools.cycle([1, 2])",
        f"itertools.accumulate({items}), itertools.pairwise({items})",
        f"map(brk, {items}), itertools.zip_longest({items}, {more})",
        f"itertools.count({scope.number()}), itertools.repeat(2)",
    )
    uses = [
        f"LOG.append(next({one}, None))",
        f"LOG.append(next({two}, None))",
        f"LOG.append(list(itertools.islice({two}, 2)))",
        f"LOG.append(list(itertools.islice({one}, brk(3))))",
        f"{one}, {two} = {two}, {one}",
        "brk()",
    ]
    picked = scope.random.sample(uses, k=4)
    return [f"{one}, {two} = {source}", *picked[:2], *block(scope.inside()), *picked[2:]]


def changed(scope: Scope, block: Block) -> list[str]:
    """A container that is changed while it is iterated, before or after its end, forward or backward."""
    held, it, seen = scope.new("c"), scope.new("it"), scope.new("v")
    n, m = scope.number(), scope.number()
    made, changes = scope.pick(
        (
            f"list({scope.items()})",
            (f"{{c}}.append({n})", "{c} and {c}.pop(0)", "{c}.clear()", f"{{c}}[:1] = [{m}]"),
        ),
        (
            f"collections.deque([{n}, {m}, 3], 4)",
            (
                f"{{c}}.append({n})",
                "{c} and {c}.pop()",
                "{c}.rotate(1)",
                "{c}.reverse()",
                f"{{c}}.extendleft([{m}])",
            ),
        ),
        (f"{{1, {n}, {m}}}", (f"{{c}}.add({n} + 9)", "{c}.discard(1)", "{c}.add(1)", "{c}.clear()")),
        (
            f"{{1: {n}, {m}: 2, 'k': 3}}",
            (
                f"{{c}}['new'] = {n}",
                f"{{c}}['k'] = {m}",
                "{c}.pop('k', None)",
                "{c}.update({c})",
                "{c}.clear()",
            ),
        ),
    )
    lines = [change.format(c=held) for change in scope.random.choices(changes, k=3)]
    way = "iter" if made.startswith("{") and ":" not in made else scope.pick("iter", "reversed")
    if scope.random.random() < 0.5:
        steps = [
            f"{it} = {way}({held})",
            f"LOG.append(next({it}, None))",
            lines[0],
            scope.pick("pass", "brk()"),
            f"LOG.append(next({it}, None))",
            f"LOG.append(list({it}))",
            lines[1],
            f"LOG.append(list({it}))",
        ]
    else:
        steps = [
            f"for {seen} in {way}({held}):",
            f"    LOG.append({seen})",
            f"    {scope.pick('pass', 'brk()')}",
        ]
        steps += [f"    if len(LOG) < {scope.random.randint(1, 40)}: {lines[0]}", lines[1], lines[2]]
    caught = ["except (RuntimeError, StopIteration) as error:", "    LOG.append(str(error))"]
    return [f"{held} = {made}", "try:", *_indented(steps), *caught, f"LOG.append(list({held}))"]


def module(scope: Scope, block: Block) -> list[str]:
    """A module that counts its calls, called in some way; its attributes are read and set."""
    t, k = scope.new("t"), scope.number()
    x = scope.tensor()
    scope.tensors.append(t)
    return [
        f"{t} = "
        + scope.pick(
            f"NET({x})",
            f"NET({x}, {k})",
            f"NET({x}, k={k})",
            f"NET.inner({x})",
            f"checkpoint(NET, {x}, use_reentrant=False)",
            f"NET.forward({x}, {k})",
            f"type(NET).forward(NET, {x})",
            f"torch.func.functional_call(NET, {{'inner.bias': B + 1}}, ({x},))",
        ),
        scope.pick(
            "NET.seen = tick()",
            "LOG.append(NET.seen)",
            "LOG.append(int(NET.runs))",
            "NET.train(not NET.training)",
            "NET.extra = brk(NET.seen)",
            "LOG.append(len(list(NET.parameters())))",
            "pass",
        ),
    ]


def chosen(scope: Scope, block: Block) -> list[str]:
    """A match statement."""
    subject = scope.pick(
        scope.number(),
        f"({scope.number()}, brk({scope.number()}))",
        scope.items(),
        "TABLE",
        "BOX",
        "TABLE.copy()",
    )
    cases = scope.random.sample(
        [
            ["case 0 | 1:", "    tick()"],
            ["case (p, r) if brk(p) != r:", "    LOG.append((p, r))"],
            ["case [p, *rest]:", "    LOG.append((p, len(rest)))"],
            ["case {'k': p}:", "    LOG.append(p)"],
            ["case {1: p, **rest}:", "    LOG.append((p, sorted(map(str, rest))))"],
            ["case Box(n=p) if p > 1:", "    LOG.append(p)"],
            ["case int(p):", "    LOG.append(brk(p))"],
        ],
        k=3,
    )
    end = ["case _:", *_indented(block(scope.inside()))]
    return [f"match {subject}:", *_indented([line for case in cases for line in case]), *_indented(end)]


FORMS: list[tuple[Callable[[Scope, Block], list[str]], int]] = [
    (bind, 4),
    (leave, 3),
    (drive, 2),
    (drop, 2),
    (begin, 2),
    (changed, 1),
    (module, 3),
    (chosen, 2),
]
