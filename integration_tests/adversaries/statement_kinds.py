"""The statements that ``statements.py`` draws: each a function of the scope, and of what draws a block inside of it."""

from __future__ import annotations

from collections.abc import Callable

from statement_loops import COUNTS_ON, HEADS
from statement_scope import Scope

Block = Callable[[Scope], list[str]]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def assign(scope: Scope, block: Block) -> list[str]:
    """A tensor, into a new name or one that stands."""
    value = scope.tensor()
    if scope.random.random() < 0.5:
        return [f"{scope.pick(*scope.tensors)} = {value}"]
    name = scope.new("t")
    lines = [f"{name} = {value}"]
    scope.tensors.append(name)
    return lines


def in_place(scope: Scope, block: Block) -> list[str]:
    t, u = scope.pick(*scope.tensors), scope.pick(*scope.tensors)
    return [
        scope.pick(
            f"{t} += 1",
            f"{t} = {t}.clone().mul_(2)",
            f"B.add_({t}.detach().sum(0))",
            f"{t} = {t}.clone(); {t}[0] = 1.0",
            "with torch.no_grad(): W.mul_(0.5)",
            f"{t} = {t} + 0; {t}.add_({u})",
            "B.zero_()",
            f"{t}[:1].detach().mul_(2)",
            f"{t}.detach().copy_({u}.detach())",
        )
    ]


def breaking(scope: Scope, block: Block) -> list[str]:
    t = scope.pick(*scope.tensors)
    return [
        scope.pick(
            'print(end="")',
            f'print("sum", {t}.shape, {t}.requires_grad)',
            "brk()",
            f"print({t}.sum().item() > 0)",
            f"{t} = brk({t})",
            f"LOG.append(brk({scope.number()}))",
            "brk(), tick(), brk()",
            f"BOX.n = brk(BOX.n) + {scope.number()} % 3",
            f"{t} = {t} * brk(2) + brk({t})",
        )
    ]


def from_data(scope: Scope, block: Block) -> list[str]:
    """Numbers, lists and index tensors whose values or sizes are data."""
    kind = scope.random.randrange(3)
    if kind == 0:
        name = scope.new("n")
        lines = [f"{name} = {scope.number()}"]
        scope.numbers.append(name)
    elif kind == 1:
        name = scope.new("l")
        lines = [f"{name} = {scope.items()}"]
        scope.lists.append(name)
    else:
        name = scope.new("q")
        index = scope.pick(*scope.indices)
        lines = [
            f"{name} = "
            + scope.pick(
                f"{index}[{index} >= 1]",
                f"torch.nonzero({index}).flatten()",
                f"torch.arange({scope.number()} + 1)",
                f"torch.cat([{index}, torch.ones(1, dtype=torch.long)])",
                f"{index}.unique()",
                f"{index} + 1",
            )
        ]
    if kind == 2:
        scope.indices.append(name)
        lines.append(f"if not len({name}): {name} = torch.ones(1, dtype=torch.long)")
    return lines


def effect(scope: Scope, block: Block) -> list[str]:
    """A change of an object that outlives the call."""
    n, m, items, t = scope.number(), scope.number(), scope.items(), scope.tensor()
    own = scope.pick(*scope.lists) if scope.lists else "QUEUE.copy()"
    return [
        scope.pick(
            f"LOG.append({n})",
            f"LOG.append(({t}).shape)",
            f"LOG.extend({items})",
            f"LOG[:0] = {items}[:2]",
            "LOG and LOG.pop()",
            f"TABLE[{n}] = {m}",
            f"TABLE.setdefault({n}, []) if {n} not in TABLE else TABLE.pop({n}, None)",
            f"TABLE.update({{{n}: {m}, 'a': {n}}})",
            f"MEMBERS.add({n})",
            f"MEMBERS.discard({n})",
            f"BOX.n += {n}",
            f"BOX.grow({n})",
            f"BOX.items.append({n})",
            f"BOX.items = BOX.items + [{n}]",
            f"setattr(BOX, 'a' + str({n} % 2), {m})",
            f"TOTAL = TOTAL + {n}",
            "TOTAL += 1",
            f"COUNTS[{n}] += 1",
            f"COUNTS.update({items})",
            f"QUEUE.append({n})",
            "LOG.append(next(IT, None))",
            "LOG.append(next(COUNTING))",
            f"{own}.append({n})",
            f"{own}.insert(0, {n})",
            f"{own} and {own}.pop()",
            f"BOX.last = ({t}).detach()",
            "LOG.append(TABLE.copy())",
            "del LOG[:2]",
            f"TABLE[1] = {items}",
            f"LOG.append(list(map(lambda p: p + TOTAL, {items})))",
            f"MEMBERS.update({items})",
            f"BOX.__dict__.setdefault('extra', []).append({n})",
            "LOG.append(BOX.grow)",
            f"QUEUE.extendleft({items})",
        )
    ]


def loop(scope: Scope, block: Block) -> list[str]:
    i, j = scope.new("i"), scope.new("j")
    source = scope.pick(*HEADS).format(
        i=i,
        j=j,
        n=scope.number(),
        items=scope.items(),
        items2=scope.items(),
        q=scope.pick(*scope.indices),
        t=scope.pick(*scope.tensors),
    )
    inner = scope.inside(loop=True)
    first = "tick()"
    if scope.generators and scope.random.random() < 0.3:
        made = f"{scope.pick(*scope.generators)}({scope.tensor()}, {scope.number()}, {scope.pick(*scope.indices)})"
        source = f"for {i}, {j} in {made}:"
        inner.numbers.append(i)
        inner.tensors.append(j)
    elif "groupby" in source and scope.random.random() < 0.7:
        first = f"tick(); {j} = list({j}); LOG.append((len({j}), {j}[0]))"
    elif any(word in source for word in COUNTS_ON):
        inner.numbers.append(i)
    else:
        first = f"tick(); LOG.append(int({i})) if not isinstance({i}, (tuple, torch.Tensor)) else None"
    lines = [source, *_indented([first, *block(inner)])]
    if scope.random.random() < 0.15:
        lines += ["else:", *_indented(block(scope.inside()))]
    return lines


def while_(scope: Scope, block: Block) -> list[str]:
    name = scope.new("n")
    inner = scope.inside(loop=True)
    inner.numbers.append(name)
    lines = [
        f"{name} = {scope.number()}",
        f"while {name} > 0:",
        f"    {name} -= 1; tick()",
        *_indented(block(inner)),
    ]
    if scope.random.random() < 0.4:
        it = scope.new("it")
        lines[0:0] = [f"{it} = iter({scope.items()})"]
        lines += [f"    LOG.append(next({it}, None))", f"LOG.append(list({it}))"]
    return lines


def jump(scope: Scope, block: Block) -> list[str]:
    if not scope.in_loop:
        return breaking(scope, block)
    return [f"if {scope.condition()}: {scope.pick('break', 'continue')}"]


def if_(scope: Scope, block: Block) -> list[str]:
    lines = [f"if {scope.condition()}:", *_indented(block(scope.inside()))]
    if scope.random.random() < 0.5:
        lines += ["else:", *_indented(block(scope.inside()))]
    return lines


def with_(scope: Scope, block: Block) -> list[str]:
    manager = scope.pick(
        "torch.no_grad()",
        "torch.no_grad()",
        "torch.enable_grad()",
        "torch.set_grad_enabled(False)",
        "torch.set_grad_enabled(True)",
        f"torch.set_grad_enabled({scope.condition()})",
        "torch.inference_mode(False)",
        "torch.autocast('cpu', dtype=torch.bfloat16)",
        "torch.autocast('cpu', enabled=False)",
        "torch.device('cpu')",
        "noted('block')",
        "contextlib.nullcontext()",
        "Swallows(ValueError)",
        "Swallows(Own, ZeroDivisionError)",
        "contextlib.suppress(Own)",
        "noted('a'), torch.no_grad()",
        "contextlib.ExitStack()",
        "torch.inference_mode()",
    )
    return [f"with {manager}:", *_indented(block(scope.inside()))]


def switched(scope: Scope, block: Block) -> list[str]:
    """A mode that is set by a call, and set back by another."""
    on, off = scope.random.choice(
        [
            ("torch.set_grad_enabled(False)", "torch.set_grad_enabled(True)"),
            ("torch.set_default_dtype(torch.float64)", "torch.set_default_dtype(torch.float32)"),
            ("torch.set_default_device('cpu')", "torch.set_default_device(None)"),
        ]
    )
    return [on, *block(scope.inside()), off]


def try_(scope: Scope, block: Block) -> list[str]:
    raised = scope.pick(
        f"if {scope.condition()}: raise Own({scope.number()})",
        f"{scope.items()}[{scope.number()}]",
        f"1 / ({scope.number()} - 1)",
        "raise ValueError('always')",
        "assert BOX.n % 2, BOX.n",
        "pass",
    )
    lines = ["try:", *_indented([*block(scope.inside()), raised])]
    if scope.random.random() < 0.7:
        caught = scope.new("e")
        lines += [f"except {scope.pick('Own', 'Exception', '(Own, IndexError)')} as {caught}:"]
        lines += _indented([f"LOG.append(repr({caught}))", *block(scope.inside())])
        if scope.random.random() < 0.3:
            lines += ["else:", *_indented(block(scope.inside()))]
        if scope.random.random() < 0.4:
            return lines
    return [*lines, "finally:", *_indented(block(scope.inside()))]


def call(scope: Scope, block: Block) -> list[str]:
    if not scope.functions:
        return closure(scope, block)
    name = scope.new("t")
    function = scope.pick(*scope.functions)
    form = scope.pick(
        "{f}({t}, {k}, {q})",
        "{f}({t}, {k}, {q})",
        "functools.partial({f}, {t})({k}, {q})",
        "[{f}({t}, p, {q}) for p in range({k} % 3 + 1)][-1]",
        "(lambda p: {f}({t}, p, {q}))({k})",
        "next(map(lambda p: {f}({t}, p, {q}), [{k}]))",
        "{f}(*[{t}, {k}, {q}])",
        "max([{f}({t}, {k}, {q})], key=lambda p: brk(1))",
    )
    text = form.format(f=function, t=scope.tensor(), k=scope.number(), q=scope.pick(*scope.indices))
    scope.tensors.append(name)
    return [f"{name} = {text}"]


def closure(scope: Scope, block: Block) -> list[str]:
    """A function inside that changes a variable of this one."""
    seen, inner = scope.new("n"), scope.new("f")
    lines = [f"{seen} = {scope.number()}", f"def {inner}(p):", f"    nonlocal {seen}", f"    {seen} += p"]
    lines += [f"    {scope.pick('brk()', 'LOG.append(' + seen + ')', 'pass')}", f"    return {seen}"]
    uses = [
        f"{inner}({scope.number()})",
        f"[{inner}(p) for p in {scope.items()}]",
        f"LOG.extend(map({inner}, {scope.items()}))",
        f"LOG.append(sum({inner}(p) for p in {scope.items()}))",
        f"BOX.items.append({inner}(1) and {seen})",
    ]
    lines += scope.random.sample(uses, 2)
    scope.numbers.append(seen)
    return lines


STATEMENTS: list[tuple[Callable[[Scope, Block], list[str]], int]] = [
    (assign, 10),
    (in_place, 3),
    (breaking, 8),
    (from_data, 7),
    (effect, 10),
    (loop, 9),
    (while_, 3),
    (jump, 3),
    (if_, 3),
    (with_, 7),
    (switched, 3),
    (try_, 4),
    (call, 6),
    (closure, 3),
]
