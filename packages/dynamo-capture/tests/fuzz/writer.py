"""Draws the text of programs: statements around a tensor, nested at random, over a few variables.

Loops with ``break``, ``continue`` and ``else``, ``try``, ``with``, nested functions with defaults and
``nonlocal``, generators that are sent to and closed early, comprehensions, unpacking, augmented assignments, ``match``,
deletions. Most programs raise somewhere, and many catch that.
"""

from __future__ import annotations

import random

NUMBERS = ("a", "b", "c")
EXCEPTIONS = (
    "ValueError", "KeyError", "IndexError", "TypeError", "ZeroDivisionError", "Own", "LookupError", "StopIteration",
)  # fmt: skip


class Writer:
    """Draws statements. ``budget`` bounds how many."""

    def __init__(self, r: random.Random) -> None:
        self.r = r
        self.budget = r.choice([6, 10, 16, 24])
        self.made = 0

    def number(self, depth: int = 0) -> str:
        """An expression for a number."""
        r = self.r
        simple = [*NUMBERS, str(r.randrange(-2, 5)), "len(items)", "box.n", "x.shape[0]", "a"]
        if depth > 2 or r.random() < 0.5:
            return r.choice(simple)
        return r.choice(
            (
                f"({self.number(depth + 1)} {r.choice('+-*')} {self.number(depth + 1)})",
                f"({self.number(depth + 1)} {r.choice(['//', '%'])} {self.number(depth + 1)})",
                f"items[{self.number(depth + 1)}]",
                f"table[{self.key()}]",
                f"table.get({self.key()}, {self.number(depth + 1)})",
                f"({self.number(depth + 1)} if {self.test(depth + 1)} else {self.number(depth + 1)})",
                f"sum({self.sequence(depth + 1)})",
                f"max({self.sequence(depth + 1)}, key=lambda v: -v)",
                f"len({self.sequence(depth + 1)})",
                f"box.grow({self.number(depth + 1)})",
                f"(c := {self.number(depth + 1)})",
                f"int({self.test(depth + 1)})",
            )
        )

    def key(self) -> str:
        return self.r.choice(["'p'", "'q'", "'r'", "a", "1"])

    def test(self, depth: int = 0) -> str:
        r = self.r
        return r.choice(
            (
                f"{self.number(depth + 1)} {r.choice(['<', '>', '==', '!=', '<=', '>='])} {self.number(depth + 1)}",
                f"{self.number(depth + 1)} in {self.sequence(depth + 1)}",
                f"{self.key()} in table",
                f"{self.number(depth + 1)} % 2",
                "items",
                f"not {self.number(depth + 1)}",
                f"{self.number(depth + 1)} < {self.number(depth + 1)} < 5",
                "x.dim() == 2",
                "a and b or c",
            )
        )

    def sequence(self, depth: int = 0) -> str:
        r = self.r
        simple = [
            "items",
            "range(3)",
            "(a, b, c)",
            "[3, 1, 2]",
            "list(table.values())",
            "sorted(seen)",
            "range(a)",
        ]
        if depth > 2 or r.random() < 0.5:
            return r.choice(simple)
        inner = self.sequence(depth + 1)
        return r.choice(
            (
                f"[v + {self.number(depth + 1)} for v in {inner}]",
                f"[v for v in {inner} if v {r.choice('<>')} {self.number(depth + 1)}]",
                f"(v * 2 for v in {inner})",
                f"[v + w for v in {inner} for w in list({self.sequence(depth + 1)})[:2]]",
                f"sorted({inner}, key=lambda v: (v % 3, v), reverse={r.choice(['True', 'False'])})",
                f"{inner}[{r.choice(['1:', ':2', '::-1', '::2'])}]",
                f"[*{inner}, *{self.sequence(depth + 1)}]",
                f"list(map(lambda v: v - a, {inner}))",
                f"list(filter(None, {inner}))",
                f"set({inner})",
                f"{{v: v for v in {inner}}}",
                f"[i * v for i, v in enumerate({inner})]",
                f"[p - q for p, q in zip({inner}, {self.sequence(depth + 1)})]",
                f"list(reversed({inner}))",
                f"tuple({inner})",
                f"numbers({self.number(depth + 1)})",
            )
        )

    def block(self, depth: int, loop: bool, generator: bool = False) -> list[str]:
        lines: list[str] = []
        for _ in range(self.r.choice([1, 1, 2, 2, 3])):
            if self.budget <= 0:
                break
            self.budget -= 1
            lines += self.statement(depth, loop, generator)
        return ["    " + line for line in lines or ["pass"]]

    def statement(self, depth: int, loop: bool, generator: bool) -> list[str]:
        r = self.r
        if depth < 4 and r.random() < 0.45:
            return self.compound(depth, loop, generator)
        choices = [
            self.assign, self.assign, self.augment, self.augment, self.tensor, self.tensor, self.note, self.note,
            self.change, self.change, self.unpack, self.leave,
        ]  # fmt: skip
        found = [r.choice(choices)()]
        if loop and r.random() < 0.15:
            return [f"if {self.test()}:", f"    {r.choice(['break', 'continue'])}"]
        if generator and r.random() < 0.3:
            return [
                r.choice(
                    [f"yield {self.number()}", f"a = yield {self.number()}", f"yield from {self.sequence()}"]
                )
            ]
        return found

    def assign(self) -> str:
        return f"{self.r.choice(NUMBERS)} = {self.number()}"

    def augment(self) -> str:
        return self.r.choice(
            (
                f"{self.r.choice(NUMBERS)} {self.r.choice(['+=', '-=', '*='])} {self.number()}",
                f"items += {self.sequence()}",
                f"items[{self.number()}] += {self.number()}",
                f"table[{self.key()}] += {self.number()}",
                f"seen |= set({self.sequence()})",
                "seen -= {1}",
                f"box.n += {self.number()}",
                "items *= 2 - len(items) // 9",
                "table |= {'r': a}",
            )
        )

    def tensor(self) -> str:
        return self.r.choice(
            (
                f"y = y * {self.number()}",
                f"y = y + x.sin() * {self.number()}",
                "y += x",
                "y = torch.cat([y, x])[:2]",
                f"y = y.sum() * {self.number()} + x",
                f"kept.append(y * {self.number()})",
                "kept[-1] = kept[-1] + y",
                "y = torch.stack(kept[-2:]).sum(0)",
                f"table[{self.key()}] = int(y.numel())",
                f"y[{self.number()}]",
            )
        )

    def note(self) -> str:
        self.made += 1
        return self.r.choice((f"notes.append(({self.made}, {self.number()}))", f"notes.append({self.made})"))

    def change(self) -> str:
        return self.r.choice(
            (
                f"items.append({self.number()})",
                f"items.insert({self.number()}, {self.number()})",
                "items.pop()",
                f"items[{self.number()}:] = {self.sequence()}",
                f"del items[{self.number()}]",
                f"table[{self.key()}] = {self.number()}",
                f"table.pop({self.key()})",
                f"del table[{self.key()}]",
                f"seen.add({self.number()})",
                f"seen.discard({self.number()})",
                f"del {self.r.choice(NUMBERS)}",
                "items.sort()",
                "items.reverse()",
                "items = items[:3]",
                f"table.setdefault({self.key()}, {self.number()})",
                "graph_break()",
                "box = Box(box.n)",
                f"global_table['g'] = {self.number()}",
            )
        )

    def unpack(self) -> str:
        return self.r.choice(
            (
                "a, b = b, a",
                f"a, *rest = {self.sequence()}",
                f"a, b = {self.sequence()}",
                f"(a, c), b = ({self.number()}, {self.number()}), {self.number()}",
                f"items[0], a = {self.number()}, {self.number()}",
            )
        )

    def leave(self) -> str:
        if self.r.random() < 0.6:
            return self.note()
        return self.r.choice(
            (
                f"raise {self.r.choice(EXCEPTIONS)}({self.number()})",
                f"raise {self.r.choice(EXCEPTIONS)}",
                f"raise Own({self.number()}) from None",
                f"raise Own('because') from ValueError({self.number()})",
                "return a, y",
                "assert a > b, a",
                "raise",
            )
        )

    def compound(self, depth: int, loop: bool, generator: bool) -> list[str]:
        kinds = [
            self.if_,
            self.for_,
            self.for_,
            self.while_,
            self.try_,
            self.try_,
            self.try_,
            self.with_,
            self.match_,
        ]
        kind = self.r.choice(kinds)
        if not generator and self.r.random() < 0.25:
            return self.r.choice([self.function, self.generator])(depth)
        return kind(depth, loop, generator)

    def if_(self, depth: int, loop: bool, generator: bool) -> list[str]:
        lines = [f"if {self.test()}:", *self.block(depth + 1, loop, generator)]
        if self.r.random() < 0.5:
            lines += ["else:", *self.block(depth + 1, loop, generator)]
        return lines

    def for_(self, depth: int, loop: bool, generator: bool) -> list[str]:
        target = self.r.choice(["a", "b", "i", "i", "i"])
        lines = [
            f"for {target} in {self.sequence()}:",
            "    tick(notes, items)",
            *self.block(depth + 1, True, generator),
        ]
        if self.r.random() < 0.3:
            lines += ["else:", *self.block(depth + 1, loop, generator)]
        return lines

    def while_(self, depth: int, loop: bool, generator: bool) -> list[str]:
        lines = [f"while {self.test()}:", "    tick(notes, items)", *self.block(depth + 1, True, generator)]
        if self.r.random() < 0.3:
            lines += ["else:", *self.block(depth + 1, loop, generator)]
        return lines

    def try_(self, depth: int, loop: bool, generator: bool) -> list[str]:
        r = self.r
        lines = ["try:", *self.block(depth + 1, loop, generator)]
        final = r.random() < 0.4
        handlers = r.choice([0, 1, 1, 2]) if final else r.choice([1, 1, 2])
        for _ in range(handlers):
            names = r.choice(EXCEPTIONS) if r.random() < 0.5 else f"({', '.join(r.sample(EXCEPTIONS, 2))})"
            lines.append(
                r.choice([f"except {names}:", f"except {names} as error:", "except Exception as error:"])
            )
            lines.append("    notes.append(('caught', type(sys.exception()).__name__, str(sys.exception())))")
            lines += self.block(depth + 1, loop, generator)
            if r.random() < 0.15:
                lines.append("    raise")
        if handlers and r.random() < 0.3:
            lines += ["else:", *self.block(depth + 1, loop, generator)]
        if final:
            lines += ["finally:", *self.block(depth + 1, loop, generator)]
        return lines

    def with_(self, depth: int, loop: bool, generator: bool) -> list[str]:
        self.made += 1
        swallows = self.r.choice(["", f", {self.r.choice(EXCEPTIONS)}", ", Exception"])
        names = [
            f"Block(notes, {self.made}{swallows})",
            "torch.no_grad()",
            f"Block(notes, {self.number()}) as held",
        ]
        return [
            f"with {', '.join(self.r.sample(names, self.r.choice([1, 1, 2])))}:",
            *self.block(depth + 1, loop, generator),
        ]

    def match_(self, depth: int, loop: bool, generator: bool) -> list[str]:
        lines = [f"match {self.r.choice([self.number(), 'items', 'table', 'box', '(a, b)'])}:"]
        patterns = [
            "0",
            "1 | 2",
            "[a, *_]",
            "[a, b]",
            "{'p': a}",
            "{'q': b, **more}",
            "Box(n=a)",
            "(0, b)",
            "int() as c",
        ]
        for pattern in self.r.sample(patterns, 3):
            guard = f" if {self.test()}" if self.r.random() < 0.3 else ""
            lines += [
                f"    case {pattern}{guard}:",
                *("    " + line for line in self.block(depth + 1, loop, generator)),
            ]
        return lines

    def function(self, depth: int) -> list[str]:
        self.made += 1
        name = f"inner{self.made}"
        shared = self.r.choice(["", "nonlocal a", "nonlocal y, b", "nonlocal items"])
        lines = [
            f"def {name}(p, a={self.number()}, *more, k={self.number()}):"
            if not shared
            else f"def {name}(p, k=1):"
        ]
        lines += [f"    {shared}"] if shared else ["    b = c = i = p", "    y = x * p", "    nonlocal box"]
        lines += self.block(depth + 2, False)
        lines += [f"    return p + {self.r.choice(['k', 'len(items)', '1'])}"]
        return [*lines, f"{self.r.choice(NUMBERS)} = {name}({self.number()})"]

    def generator(self, depth: int) -> list[str]:
        self.made += 1
        name = f"giving{self.made}"
        lines = [
            f"def {name}(p):",
            "    nonlocal a, b, c, y, items, table, seen, box",
            "    i = 0",
            "    yield p",
        ]
        lines += self.block(depth + 2, False, True)
        lines += ["    return a"]
        use = self.r.choice(
            (
                [f"notes.append(list({name}({self.number()})))"],
                [
                    f"for i in {name}({self.number()}):",
                    "    tick(notes, items)",
                    *self.block(depth + 2, True),
                ],
                [f"g = {name}(1)", "notes.append(next(g))", "g.close()"],
                [f"g = {name}(1)", "next(g)", f"notes.append(g.send({self.number()}))"],
                [f"g = {name}(1)", "next(g)", f"g.throw({self.r.choice(EXCEPTIONS)}(1))"],
                [f"a, b, *rest = {name}({self.number()})"],
                [f"b = sum(v for v in {name}(2) if v)"],
            )
        )
        return [*lines, *use]


def source(r: random.Random) -> str:
    """The text of one program."""
    writer = Writer(r)
    lines = ["a, b, c, i = n, 2, 3, 0", "y = x + 1", "error = held = rest = more = g = None"]
    while writer.budget > 0:
        lines += [line[4:] for line in writer.block(0, False)]
    lines.append("return y, a, b, c, i, rest")
    body = "\n    ".join(lines)
    return f"def program(x, n, items, table, seen, box, kept, notes):\n    {body}\n"
