"""More statements for ``statements.py``: hierarchies of classes, enumerations, data classes, functions that choose by
class or remember, stacks of managers, coroutines, names that are deleted in loops, gradients taken inside, ``out=``.

What they need beside the names that every program has is in ``statement_classes``.
"""

# ruff: noqa: E501  # programs, as text
from __future__ import annotations

from collections.abc import Callable

from statement_scope import Scope

Block = Callable[[Scope], list[str]]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def hierarchy(scope: Scope, block: Block) -> list[str]:
    """An object of a class with bases, made inside or before, whose methods call those of the bases."""
    o, a, n = scope.new("o"), scope.new("n"), scope.number()
    made = scope.pick("Left.of", "Right", "Both", "Tracked", "Both.of", "Tracked.of")
    lines = [f"{o} = {scope.pick(f'{made}({n})', 'ROOT')}"]
    uses = [
        f"{a} = {o}.step({scope.number()})",
        f"{o}.level = {n} % 5",
        f"{o}.level += 1",
        f"LOG.append({o}.level)",
        f"LOG.append({o}.once if isinstance({o}, Left) else {o}.right)",
        f"{o}.extra = brk({n})",
        f"LOG.append(super(type({o}), {o}).step.__qualname__)",
        f"{a} = Base.step({o}, brk(1))",
        f"LOG.append((Base.made % 7, isinstance({o}, Right)))",
        f"del {o}.__dict__['n']; {o}.n = 2",
        f"LOG.append([name for name in vars({o})])",
        f"LOG.append(getattr({o}, 'unknown', 'none'))",
        f"{o}.n, {a} = {a}, {o}.n",
    ]
    lines.append(f"{a} = 1")
    lines += scope.random.sample(uses, k=scope.random.randint(2, 4))
    scope.numbers.append(f"({a} % 5)")
    if scope.random.random() < 0.3:
        raised = scope.pick("raise Own(1)", "pass", f"if {scope.condition()}: raise Own(2)")
        inner = [*block(scope.inside()), raised]
        lines += ["try:", f"    with {o} as {scope.new('v')}:", *_indented(_indented(inner))]
        lines += ["except Own:", "    LOG.append('own')"]
    return lines


def enumerated(scope: Scope, block: Block) -> list[str]:
    """Members of enumerations, found by numbers from data."""
    k, n = scope.new("k"), scope.number()
    lines = [
        f"{k} = {scope.pick(f'Kind({n} % 3)', 'Kind[brk(str(chr(79))) + chr(78) + chr(69)]', 'list(Kind)[brk(1)]')}"
    ]
    lines += scope.random.sample(
        [
            f"LOG.append({k}.next().name)",
            f"TABLE[{k}] = brk({k}.value)",
            f"LOG.append({k} is Kind.ONE)",
            f"LOG.append((Flags.A | Flags({n} % 8)).value)",
            f"LOG.append(Flags.B in Flags({n} % 8))",
            f"LOG.append([m.name for m in Kind if m is not brk({k})])",
            f"match {k}:\n    case Kind.ZERO:\n        brk()\n    case Kind.ONE | Kind.TWO as found:\n        LOG.append(found)",
            f"LOG.append({{m: brk(m.value) for m in Kind}}[{k}])",
        ],
        k=2,
    )
    return [part for line in lines for part in line.split("\n")]


def data_class(scope: Scope, block: Block) -> list[str]:
    p, n, m = scope.new("p"), scope.number(), scope.number()
    e = scope.new("e")
    lines = [
        f"{p} = {scope.pick(f'Pair({n})', f'Pair({n}, brk({m}))', f'dataclasses.replace(Pair(1), b={m})')}"
    ]
    lines += scope.random.sample(
        [
            f"LOG.append({p})",
            f"LOG.append({p} < Pair({m}))",
            f"MEMBERS.add({p})",
            f"LOG.append(dataclasses.astuple({p}))",
            f"try:\n    {p}.a = 1\nexcept dataclasses.FrozenInstanceError as {e}:\n    LOG.append(str({e}))",
            f"match {p}:\n    case Pair(0, r):\n        LOG.append(r)\n    case Pair(a=q, b=2) if brk(q):\n        LOG.append(('two', q))\n    case _:\n        brk()",
            f"BOX.record = Record('r', {scope.items()}, brk({n}))",
            "LOG.append(Record('a', [1]) == Record('a', [brk(1)], 5))",
            f"BOX.items.append(sorted([{p}, Pair(brk(1)), Pair(0, 1)])[0])",
        ],
        k=2,
    )
    return [part for line in lines for part in line.split("\n")]


def choosing(scope: Scope, block: Block) -> list[str]:
    """Functions that choose by the class of an argument, remember results, or have state of their own."""
    a, b, n = scope.new("n"), scope.new("m"), scope.number()
    add, read = scope.new("f"), scope.new("f")
    forms = [
        [f"LOG.append((shown({n}), shown({scope.items()}), shown({scope.tensor()}), shown('a')))"],
        [f"LOG.append([shown(p) for p in (1, [], brk({n}))])"],
        [f"LOG.append(remembered({n} % 3) + remembered(brk({n}) % 3))"],
        [f"LOG.append(gathering({n}))", "LOG.append(gathering.calls)"],
        [f"{add}, {read} = counter()", f"LOG.append({add}({n}))", "brk()", f"LOG.append(({read}(), {add}(1), {read}()))"],
        [f"heapq.heappush(HEAP, brk({n}))", "LOG.append(heapq.heappop(HEAP))"],
        [f"bisect.insort(SORTED, {n})", "brk()", "LOG.append(SORTED[:3])"],
        [f"random.seed({n})", "LOG.append(random.randint(0, 9))", "brk()", "LOG.append(random.random() < 0.5)"],
        [f"QUEUE.rotate({n})", "QUEUE.reverse()", "LOG.append(list(QUEUE))"],
        ["BOX.items.sort(key=lambda p: brk(-p) if type(p) is int else 0)"],
        [f"warnings.warn(f'drawn {{{n}}}')", "brk()"],
        [f"{a} = {b} = {n}", f"while ({a} := {a} - 1) > 0: tick(); brk({a})", f"LOG.append(({a}, [{b} := brk(p) for p in {scope.items()}], {b}))"],
        [f"{a}, *{b} = iter([{n}, *{scope.items()}, *(brk(p) for p in range(2))])", f"LOG.append(({a}, {b}))"],
        [f"LOG.append(max(*{scope.items()}, *map(brk, [1, {n}])))"],
        [f"LOG.append({{**TABLE, **dict(zip(map(brk, 'ab'), {scope.items()}))}})"],
        [f"LOG.append((lambda p, *q, r=brk(1), **s: (p, q, r, s))(*[{n}, brk(2)], **{{'t': {n}}}))"],
    ]  # fmt: skip
    return list(scope.random.choice(forms))


def stacked(scope: Scope, block: Block) -> list[str]:
    """A stack of managers and callbacks, left by its end, by an exception or by itself."""
    s, n = scope.new("s"), scope.number()
    uses = [
        f"{s}.callback(LOG.append, {n})",
        f"{s}.enter_context(noted('stack'))",
        f"{s}.enter_context(torch.no_grad())",
        f"{s}.enter_context(Breaks(False))",
        f"{s}.callback(brk)",
        f"{s}.push(lambda *info: LOG.append(info[0] and info[0].__name__))",
        f"{s}.push(Swallows(Own))",
        f"if {scope.condition()}: {s}.enter_context(Both(1))",
        "brk()",
    ]
    inner = scope.random.sample(uses, k=3)
    inner += [
        *block(scope.inside()),
        scope.pick("pass", f"{s}.close()", f"{s}.pop_all().close()", "raise Own(1)"),
    ]
    return ["try:", f"    with contextlib.ExitStack() as {s}:", *_indented(_indented(inner)), "except Own:", "    LOG.append('out')"]  # fmt: skip


def coroutine(scope: Scope, block: Block) -> list[str]:
    """A coroutine that is driven by hand, to its end, by an exception, or not at all."""
    c, t = scope.new("c"), scope.new("t")
    made = scope.pick("waits", "outer").join(("", f"({scope.tensor()}, {scope.number()})"))
    scope.tensors.append(t)
    if scope.random.random() < 0.6:
        return [f"{t} = driven({made}, [{scope.number()}, 1])"]
    end = scope.pick(f"{c}.close()", f"{c}.throw(Own(1))")
    return [
        f"{t} = {scope.tensor()}",
        f"{c} = {made}",
        "try:",
        *_indented([f"LOG.append({c}.send(None))", *block(scope.inside()), end]),
        "except (Own, StopIteration) as stop:",
        "    LOG.append(type(stop).__name__)",
    ]


def deleted(scope: Scope, block: Block) -> list[str]:
    """Names, items and attributes that are deleted in loops, and a loop left by ``finally``."""
    i, n = scope.new("i"), scope.new("n")
    items = scope.items()
    inner = scope.random.choice(
        [
            [f"{n} = {i}", scope.pick("brk()", "pass"), f"del {n}"],
            [f"TABLE[{i}] = 1", "if len(TABLE) > 2: del TABLE[next(iter(TABLE))]"],
            [f"BOX.now = brk({i})", "del BOX.now"],
            ["try:", f"    if int({i}) == 1: continue", f"    LOG.append({i})", "finally:", f"    {scope.pick('brk()', 'tick()')}"],
            ["try:", f"    if int({i}) == 1: break", f"    1 / int({i})", "except ZeroDivisionError:", "    brk(); continue", "finally:", "    LOG.append('f')"],
            ["with noted('loop'):", f"    if int({i}) > 1: break", "    brk()"],
            [f"{n} = [{i}]", f"for {i} in {n}: del {n}[0]; brk()"],
        ]
    )  # fmt: skip
    lines = [f"for {i} in {items}:", *_indented(["tick()", *inner])]
    return [*lines, *scope.random.choice([["else:", "    LOG.append('ended')"], []])]


def differentiated(scope: Scope, block: Block) -> list[str]:
    """Gradients that are taken, and hooks that are registered, inside."""
    t, u, n = scope.new("t"), scope.new("t"), scope.number()
    x = scope.tensor()
    forms = [
        [f"{t} = Doubled.apply({x})"],
        [f"{t} = {x}", f"if {t}.requires_grad: {t}.register_hook(lambda g: LOG.append('hook'))"],
        [f"{u} = ({x}).detach().requires_grad_()", f"{t}, = torch.autograd.grad((Doubled.apply({u}) * brk({n})).sum(), {u})"],
        [f"{u} = ({x}).detach().requires_grad_()", "with torch.enable_grad():", f"    ({u} * {u}).sum().backward()", f"{t} = {u}.grad"],
        ["with torch.enable_grad():", f"    {t} = ({x} * W).tanh() if ({x}).shape[0] == 3 else {x}", "brk()"],
        [f"{t} = checkpoint(lambda p: brk(p.sin()) * 2, {x}, use_reentrant=False)"],
        [f"{t} = torch.func.vmap(lambda p: p * {n})({x})"],
        [f"{t} = torch.func.grad(lambda p: (p * brk(2)).sum())({x})"],
    ]  # fmt: skip
    scope.tensors.append(t)
    return list(scope.random.choice(forms))


def out_of(scope: Scope, block: Block) -> list[str]:
    """``out=`` into tensors that fit, are resized, or are views; local, shared, of a module."""
    o, t, u = scope.new("o"), scope.new("t"), scope.tensor()
    n = scope.number()
    into = scope.pick(
        "torch.empty(0)",
        f"torch.zeros(({u}).shape)",
        "EMPTY",
        "torch.empty(0)",
        "OUT[:1]",
        "torch.zeros(2, 5)",
    )
    forms = [
        f"torch.add(({u}).detach(), {n}, out={o})",
        f"torch.mul(({u}).detach(), 2, out={o})",
        f"torch.cat([({u}).detach(), B[None]], out={o})",
        f"torch.arange({n}, out={o})",
        f"torch.full(({n}, 3), 1.5, out={o})",
        f"torch.cumsum(({u}).detach(), 0, out={o})",
        f"torch.sum(({u}).detach(), 0, out=NET.runs if {n} < 0 else {o})",
    ]
    scope.tensors.append(t)
    return [
        f"{o} = {into}",
        *scope.random.sample(["brk()", "pass", f"{t} = {o}"], k=1),
        scope.pick(*forms),
        scope.pick("brk()", f"LOG.append(tuple({o}.shape))", "pass"),
        f"{t} = {u} + ({o}.sum() if {o}.numel() > 3 else {o}.numel())",
    ]


STRUCTURES: list[tuple[Callable[[Scope, Block], list[str]], int]] = [
    (hierarchy, 4),
    (enumerated, 2),
    (data_class, 2),
    (choosing, 4),
    (stacked, 2),
    (coroutine, 2),
    (deleted, 2),
    (differentiated, 3),
    (out_of, 2),
]
