"""Small random programs: containers, loops, closures, generators, objects, tensors, mutation and exceptions.

``source(seed)`` is the text of a function ``make()`` that returns ``f(x, n, a, d)``, with state between its calls.
"""

from __future__ import annotations

import random

_PRELUDE = """
class Oops(Exception):
    pass


class Box:
    kind = "box"

    def __init__(self, v):
        self.v = v
        self.log = []

    def bump(self, k):
        self.v = self.v + k
        self.log.append(k)
        return self.v

    def __len__(self):
        return len(self.log)

    def __getitem__(self, i):
        return self.log[i]


@contextlib.contextmanager
def noted(log, name):
    log.append("+" + name)
    try:
        yield len(log)
    finally:
        log.append("-" + name)


def numbers(n, log):
    try:
        for i in range(n):
            got = yield i * 2
            if got is not None:
                log.append(got)
    finally:
        log.append("done")
    return n


def make():
    count = 0
    kept = []
    box = Box(1)
"""


class Writer:
    """One program. ``ints``, ``tensors`` and so on are the names in scope, by kind."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.depth = 2
        self.fresh = 0
        self.budget = self.rng.randint(6, 16)
        self.loops = 0
        self.ints = ["n", "count", "len(a)", "len(kept)", "x.shape[0]", "box.v"]
        self.tensors = ["x"]
        self.lists = ["a", "kept", "box.log"]
        self.dicts = ["d"]
        self.sets: list[str] = []

    def program(self) -> str:
        """The whole text."""
        self.line("nonlocal count")
        self.line("log = []")
        while self.budget > 0:
            self.statement()
        shown = ", ".join(
            dict.fromkeys(
                [*self.tensors, *self.ints, *self.lists, *self.dicts, *map("sorted({})".format, self.sets)]
            )
        )
        self.line(f"return log, {shown}")
        body = "\n".join(self.lines)
        return f"{_PRELUDE}\n    def f(x, n, a, d):\n{body}\n\n    return f\n"

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self, prefix: str) -> str:
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    def pick(self, options):
        return self.rng.choice(options)

    def block(self, count: int | None = None) -> None:
        """An indented block; names that are made in it are not used after it."""
        saved = {k: list(getattr(self, k)) for k in ("ints", "tensors", "lists", "dicts", "sets")}
        self.depth += 1
        for _ in range(count or self.rng.randint(1, 3)):
            self.statement()
        self.depth -= 1
        for kind, names in saved.items():
            setattr(self, kind, names)

    # Expressions.

    def integer(self, deep: int = 0) -> str:
        kind = self.rng.randint(0, 9 if deep < 2 else 3)
        if kind <= 2:
            return self.pick(self.ints)
        if kind == 3:
            return str(self.rng.randint(-3, 9))
        one, other = self.integer(deep + 1), self.integer(deep + 1)
        return self.pick(
            [
                f"({one} + {other})", f"({one} - {other})", f"({one} * {self.rng.randint(0, 3)})", f"abs({one})",
                f"max({one}, {other})", f"({one} // {self.rng.randint(1, 4)})", f"({one} % {self.rng.randint(2, 5)})",
                f"({one} if {self.condition(deep + 1)} else {other})", f"sum({self.pick(self.lists)}[:2], {one})",
                f"{self.pick(self.dicts)}.get({self.key()}, {one})", f"len({self.pick(self.dicts)})",
                f"sum(i for i in range({self.rng.randint(0, 3)}))", f"(lambda k: k + {one})({other})",
            ]
        )  # fmt: skip

    def key(self) -> str:
        return self.pick(['"a"', '"b"', '"c"', "1", "(1, 2)", "None", "True"])

    def condition(self, deep: int = 0) -> str:
        one, other = self.integer(deep + 1), self.integer(deep + 1)
        return self.pick(
            [
                f"{one} > {other}", f"{one} == {other}", f"{self.key()} in {self.pick(self.dicts)}", f"not {self.pick(self.lists)}",
                f"{one} in {self.pick(self.lists)}", f"len({self.pick(self.lists)}) > {self.rng.randint(0, 3)}", "x.dim() == 2",
                f"{one} < {other} <= 5", f"isinstance({one}, int) and {one} > 1", "bool(box)", f"x.shape[0] > {self.rng.randint(1, 4)}",
            ]
        )  # fmt: skip

    def tensor(self, deep: int = 0) -> str:
        if deep > 2 or self.rng.random() < 0.3:
            return self.pick(self.tensors)
        one, other = self.tensor(deep + 1), self.tensor(deep + 1)
        return self.pick(
            [
                f"({one} + {other})", f"({one} * {self.integer(1)})", f"torch.sin({one})", f"{one}.clone()", f"({one} - 1)",
                f"torch.where({one} > 0, {one}, {other})", f"{one}.flip(0)", f"({one} / 2)", f"{one}.view(-1).view({one}.shape)",
                f"sum([{one}, {other}])", f"torch.stack([{one}, {other}]).mean(0)", f"{one}.detach()", f"({one} + {one}.sum() * 0.01)",
            ]
        )  # fmt: skip

    # Statements.

    def statement(self) -> None:
        self.budget -= 1
        options = [
            self.assign, self.assign, self.list_change, self.list_change, self.dict_change, self.tensor_change, self.set_change,
            self.branch, self.attempt, self.object_change, self.function, self.comprehension, self.generator, self.closure, self.note,
        ]  # fmt: skip
        if self.depth < 5 and self.loops < 2:
            options += [self.loop, self.loop, self.while_loop, self.with_block]
        if self.rng.random() < 0.08:
            options = [self.break_graph]
        self.pick(options)()

    def assign(self) -> None:
        if self.rng.random() < 0.5:
            made = self.name("t")
            self.line(f"{made} = {self.tensor()}")
            self.tensors.append(made)
        else:
            made = self.name("i")
            self.line(f"{made} = {self.integer()}")
            self.ints.append(made)

    def list_change(self) -> None:
        a, v = self.pick(self.lists), self.integer()
        self.line(
            self.pick(
                [
                    f"{a}.append({v})", f"{a}.extend([{v}, {self.integer()}])", f"{a}.insert(0, {v})", f"{a}[:1] = [{v}]",
                    f"{a} and {a}.pop()", f"{a}.reverse()", f"{a}.sort()", f"del {a}[3:]", f"{a}[:] = {a}[::-1]",
                    f"{a}.extend({self.pick(self.lists)}[:2])", f"{a}.append({a}[0] if {a} else {v})",
                ]
            )
        )  # fmt: skip
        if self.rng.random() < 0.3:
            made = self.name("l")
            self.line(
                f"{made} = "
                + self.pick([f"list({a})", f"{a}[1:]", f"[*{a}, {v}]", f"{a}", f"sorted({a})", f"{a} * 2"])
            )
            self.lists.append(made)

    def dict_change(self) -> None:
        d, k, v = self.pick(self.dicts), self.key(), self.integer()
        self.line(
            self.pick(
                [
                    f"{d}[{k}] = {v}", f"{d}.pop({k}, None)", f"{d}.setdefault({k}, {v})", f"{d}.update({{{k}: {v}}})",
                    f"{d}[{k}] = {d}.get({k}, 0) + 1", f"log.append(list({d}.items()))", f"log.append(sorted(map(str, {d})))",
                    f"{d} and log.append({d}.popitem())", f"log.append([*{d}.values()])",
                ]
            )
        )  # fmt: skip
        if self.rng.random() < 0.25:
            made = self.name("m")
            self.line(
                f"{made} = "
                + self.pick([f"dict({d})", f"{{**{d}, {k}: {v}}}", f"{d} | {{{k}: {v}}}", f"{d}"])
            )
            self.dicts.append(made)

    def set_change(self) -> None:
        if not self.sets or self.rng.random() < 0.4:
            made = self.name("s")
            self.line(
                f"{made} = "
                + self.pick(
                    [f"set({self.pick(self.lists)})", f"{{{self.integer()}, {self.integer()}}}", "set()"]
                )
            )
            self.sets.append(made)
            return
        s = self.pick(self.sets)
        self.line(self.pick([f"{s}.add({self.integer()})", f"{s}.discard({self.integer()})", f"{s} |= set({self.pick(self.lists)})",
                             f"log.append(list({s}))", f"log.append({self.integer()} in {s})", f"{s} &= {{1, 2, 3, {self.integer()}}}"]))  # fmt: skip

    def tensor_change(self) -> None:
        t = self.pick(self.tensors)
        self.line(
            self.pick(
                [
                    f"{t}.add_({self.integer()})", f"{t}[0] = {self.integer()}", f"{t}.mul_(2)", f"{t}[:, 0].add_(1)",
                    f"{t}.view(-1)[0] = 3", f"x += {self.integer()}", f"{t}.copy_({self.tensor()})",
                ]
            )
        )  # fmt: skip

    def object_change(self) -> None:
        self.line(
            self.pick(
                [
                    f"box.bump({self.integer()})", f"box.v = {self.integer()}", "log.append(len(box))", f"box.extra = {self.integer()}",
                    "log.append(hasattr(box, 'extra'))", "log.append(getattr(box, 'extra', None))", "log.append(box.kind)",
                    "box.__dict__.pop('extra', None)", "log.append([i for i in box])", "log.append(sorted(vars(box)))",
                ]
            )
        )  # fmt: skip

    def note(self) -> None:
        self.line(self.pick([f"log.append({self.integer()})", f"log.append(f'{{{self.integer()}}}-{{{self.pick(self.lists)}}}')",
                             f"log.append(({self.integer()}, 'x'))", f"print({self.integer()}, {self.pick(self.lists)})"]))  # fmt: skip

    def break_graph(self) -> None:
        made = self.name("i")
        self.line(f"{made} = int({self.pick(self.tensors)}.sum().item()) % 5")
        self.ints.append(made)

    def branch(self) -> None:
        self.line(f"if {self.condition()}:")
        self.block()
        if self.rng.random() < 0.5:
            self.line("else:")
            self.block()

    def loop(self) -> None:
        self.loops += 1
        i = self.name("i")
        kind = self.rng.randint(0, 4)
        head = [f"{i} in range({self.rng.randint(0, 3)})", f"{i} in list({self.pick(self.lists)})[:3]", f"{i}, _ in enumerate({self.pick(self.lists)}[:2])",
                f"_, {i} in zip('ab', {self.pick(self.lists)}, strict=False)", f"{i} in sorted({self.pick(self.dicts)}.values())"][kind]  # fmt: skip
        self.line(f"for {head}:")
        self.ints.append(i)
        self.block()
        self.depth += 1
        if self.rng.random() < 0.3:
            self.line(f"if {self.condition()}: {self.pick(['break', 'continue'])}")
        self.depth -= 1
        self.ints.remove(i)
        if self.rng.random() < 0.2:
            self.line("else:")
            self.block(1)
        self.loops -= 1

    def while_loop(self) -> None:
        self.loops += 1
        w = self.name("w")
        self.line(f"{w} = {self.rng.randint(0, 3)}")
        self.line(f"while {w} > 0:")
        self.depth += 1
        self.line(f"{w} -= 1")
        self.depth -= 1
        self.block()
        self.loops -= 1

    def with_block(self) -> None:
        self.line(
            self.pick(
                [
                    "with torch.no_grad():",
                    "with noted(log, 'w') as _k:",
                    "with contextlib.suppress(KeyError, IndexError):",
                ]
            )
        )
        self.block()

    def attempt(self) -> None:
        self.line("try:")
        self.depth += 1
        if self.rng.random() < 0.4:
            self.statement()
        self.line(
            self.pick(
                [
                    f"log.append({self.pick(self.dicts)}[{self.key()}])", f"log.append({self.pick(self.lists)}[{self.rng.randint(0, 4)}])",
                    f"if {self.condition()}: raise Oops({self.integer()})", f"log.append(1 // ({self.integer()}))",
                    f"{self.pick(self.lists)}.remove({self.integer()})", f"log.append(int('{self.pick(['1', 'x'])}'))", "x.nope",
                ]
            )
        )  # fmt: skip
        self.depth -= 1
        self.line("except (KeyError, IndexError, Oops) as error:")
        self.depth += 1
        self.line("log.append((type(error).__name__, str(error)))")
        self.depth -= 1
        if self.rng.random() < 0.85:
            self.line("except (ValueError, ZeroDivisionError, AttributeError) as error:")
            self.block(1)
        if self.rng.random() < 0.3:
            self.line("else:")
            self.block(1)
        if self.rng.random() < 0.4:
            self.line("finally:")
            self.block(1)

    def function(self) -> None:
        g = self.name("g")
        self.line(f"def {g}(t, k=2, *rest, scale=1):")
        self.depth += 1
        self.line("log.append(len(rest) + k)")
        self.line(f"return t * k + scale, k + {self.integer()}")
        self.depth -= 1
        t, i = self.name("t"), self.name("i")
        arguments = self.pick(
            ["", f", {self.integer()}", f", 1, 2, 3, scale={self.integer()}", ", *[1, 2]", ", **{'scale': 3}"]
        )
        self.line(f"{t}, {i} = {g}({self.tensor()}{arguments})")
        self.tensors.append(t)
        self.ints.append(i)

    def closure(self) -> None:
        g = self.name("g")
        total = self.name("c")
        self.line(f"{total} = {self.integer()}")
        self.line(f"def {g}(k):")
        self.depth += 1
        self.line(f"nonlocal {total}, count")
        self.line(f"{total} += k")
        self.line("count += 1")
        self.line(f"return {total}")
        self.depth -= 1
        self.line(f"log.append([{g}({self.integer()}), {g}(1)])")
        self.ints.append(total)

    def comprehension(self) -> None:
        a = self.pick(self.lists)
        made = self.name("l")
        self.line(f"{made} = " + self.pick([f"[i + {self.integer()} for i in {a}]", f"[i for i in {a} if i > {self.integer()}]",
                                            f"list(map(lambda i: i * 2, {a}))", f"[i * j for i in {a}[:2] for j in range(2)]",
                                            f"[v for v in {{i: i + 1 for i in {a}}}.values()]", f"list(itertools.accumulate({a}))",
                                            f"[p + q for p, q in itertools.pairwise({a})]"]))  # fmt: skip
        self.lists.append(made)

    def generator(self) -> None:
        g = self.name("g")
        self.line(f"{g} = numbers({self.rng.randint(0, 3)}, log)")
        self.line(self.pick([f"log.extend({g})", f"log.append(next({g}, 'none'))", f"log.append(list(zip({g}, 'ab', strict=False)))",
                             f"log.append((next({g}, 0), next({g}, 0))); {g}.close()"]))  # fmt: skip


def source(seed: int) -> str:
    """The text of the program number ``seed``."""
    return Writer(seed).program()
