"""Programs about gradients: hooks of every kind, custom functions, double backward, modes, histories that end.

What a program returns is differentiated by its ``after``: in parts, twice, with hooks, with respect to tensors that
were not used. Gradients that are None, zero or NaN must be so as in eager, and hooks run as often and in that order.
"""

from __future__ import annotations

from random import Random

from driver import Comparing, main
from gradient_texts import AFTERS, HEAD, WANTED

_HAVING_EFFECTS = ("Noting", "Counting")
_VALUES = ("0.0", "-0.0", "1.0", "-1.0", "0.5", "2.0", "-3.0", "4.0")
_EDGES = ("float('inf')", "float('-inf')", "float('nan')", "80.0", "-120.0")
"""No numbers like 1e30 and 1e-30: sums of their gradients depend on the order (gradient_values has them). Nor 88: what
``exp`` makes of it overflows or not by the order of products, and what it makes of -88 is 0 in compiled code
(decision 0066)."""

_VIEW = "{a}.t().t()"
_UNARY = (
    "{a}.sin()",
    "{a}.exp()",
    "{a}.relu()",
    "{a} * 3",
    "{a}.sqrt()",
    "{a}.abs()",
    "{a}.log()",
    "{a} ** 2",
    "{a}.clamp(-1, 1)",
    _VIEW,
    "{a} / 2",
    "{a}.softmax(-1)",
    "{a} - {a}.mean()",
    "torch.where({a} > 0, {a}, {a}.exp())",
    "{a}.masked_fill({a} > 1, 0.0)",
    "{a} * {a}.norm()",
    "{a} * {a}.max()",
    "{a}.cumsum(0)",
    "{a}.tanh()",
    "{a}.flip(0)",
    "{a}.clone()",
    "{a}.pow(0.5)",
    "torch.nn.functional.softplus({a})",
    "torch.where({a} > 0, {a}.sqrt(), 0.0)",
    "torch.where({a} != 0, 1 / {a}, 0.0)",
    "{a}.detach()",
    "{a}.prod(0, keepdim=True).expand_as({a})",
)
_BINARY = (
    "{a} + {b}",
    "{a} * {b}",
    "{a} - {b}",
    "{a} / {b}",
    "torch.maximum({a}, {b})",
    "torch.where({a} > {b}, {a}, {b})",
    "torch.atan2({a}, {b})",
    "torch.hypot({a}, {b})",
    "Plain.apply({a}, {b})",
    "sum(Partial.apply({a}, {b}))",
    "{a}.detach() * {b}",
    "torch.stack([{a} * 1, {b} * 1]).amax(0)",
)
"""The gradients that ``stack`` gives share memory: which of them a leaf keeps, and which gets a sum, depends on the
order in which autograd meets them. One result of ``Partial`` alone has a gradient that is None for an argument. Behind
a graph break, a compiled function that made the argument cannot know whether autograd has reached it or not
(docs/soundness.md)."""
_FUNCTIONS = (
    "Noting.apply({a})",
    "Counting.apply({a}, SEEN)",
    "Writing.apply({a}.clone()) * 1",
    "Two.apply({a})[0]",
    "checkpoint(lambda t: t.sigmoid() * t, {a}, use_reentrant=False)",
    "MODULE({a})",
)


class _Body:
    """Lines of one program, and the names of its tensors."""

    def __init__(self, random: Random, hooks: tuple[str, ...], after: str) -> None:
        self.random = random
        self.hooks = hooks
        self.twice = "create_graph" in after
        self.chooses = "autograd.grad(" in after
        self.written = False
        self.views: dict[str, str] = {}
        """Of the arguments."""
        self.behind: set[str] = set()
        """Views of an argument that was written to since."""
        self.broken = False
        self.of_functions: set[str] = set()
        self.lines: list[str] = []
        self.names = ["x", "y"]
        self.count = 0

    def name(self) -> str:
        self.count += 1
        made = f"t{self.count}"
        return made

    def some(self) -> str:
        """A tensor, rather a recent one."""
        return self.random.choice(self.names + self.names[-2:])

    def add(self, line: str, indent: int = 0) -> None:
        self.lines.append("    " * (1 + indent) + line)

    def compute(self, indent: int = 0) -> None:
        forms = self.random.choice((_UNARY, _UNARY, _BINARY, _BINARY, _FUNCTIONS))
        form, one, other = self.random.choice(forms), self.some(), self.some()
        if self.chooses and self.broken and form.startswith(_HAVING_EFFECTS):
            return  # between two graphs it is autograd's, which runs it on the way to what the graph before leads to
        if one == other and ("apply" in form or "/" in form):
            # The gradients of a tensor that is given twice are added inside of a graph, in another order than eager's:
            # those of x / x cancel.
            other = "y" if one == "x" else "x"
        made = self.name()
        self.add(f"{made} = {form.format(a=one, b=other)}", indent)
        self.names.append(made)
        viewed = one if one in "xy" else self.views.get(one)
        if form == _VIEW and viewed is not None:
            self.views[made] = viewed
        if "apply" in form or "checkpoint" in form:
            self.of_functions.add(made)

    def statement(self) -> None:
        chosen = self.random.random()
        if chosen < 0.55:
            self.compute()
        elif chosen < 0.75:
            self.hook()
        else:
            self.special()

    def hook(self) -> None:
        self.broken = True
        random, tensor, other = self.random, self.some(), self.some()
        kind = random.choice(self.hooks)
        if "grad_fn" in kind and tensor in self.of_functions:
            return  # the node of a function with a derivative of its own, which a graph calls in another way
        if self.chooses and "multi" in kind and "'any'" not in kind:
            return  # torch refuses to be asked about leaves, in whichever of their hooks comes first
        if ("'any'" in kind and self.written) or not self.behind.isdisjoint((tensor, other)):
            return  # torch crashes if a leaf was written to of which this is, or of which there is, a view
        line = kind.format(
            a=tensor, b=other, n=f"{len(self.lines)}", f=random.choice(("2", "0", "-1", "0.5"))
        )
        guard = f"if {tensor}.requires_grad"
        if "grad_fn" in line:
            guard += f" and {tensor}.grad_fn is not None"
        if "multi" in line:
            one, other = line.partition("((")[2].partition(")")[0].split(", ")
            guard = f"if {one}.requires_grad and {other}.requires_grad"
        self.add(f"{guard}:")
        handle = random.random()
        if handle < 0.6 or "retain" in line:
            self.add(line, 1)
        else:
            self.add(f"handle = {line}", 1)
            if handle < 0.8:
                self.compute(1)
                self.names.pop()
                self.add("handle.remove()", 1)
            else:
                self.add("say('handle', handle.id is not None)", 1)

    def special(self) -> None:
        self.broken = True
        random = self.random
        match random.randrange(12):
            case 0:
                self.add("print('here')")
            case 1:
                tensor, made = self.some(), self.name()
                self.add("with torch.no_grad():")
                self.add(f"{made} = {tensor} * 2", 1)
                if random.random() < 0.3:
                    self.add("print('there')", 1)
                    self.add(f"{made} = {made} + {self.some()}", 1)
                self.names.append(made)
            case 2:
                made = self.name()
                self.add(f"{made} = {self.some()}.detach().requires_grad_()")
                self.names.append(made)
            case 3:
                self.written = True
                self.add("with torch.no_grad():")
                written = random.choice(["x", "y"])
                self.behind.update(name for name, viewed in self.views.items() if viewed == written)
                self.add(f"{written}[0].add_(1)", 1)
            case 4:
                made = self.name()
                self.add(f"{made} = {self.some()}.clone()")
                self.add(f"{made}[0].mul_({random.choice(['2', self.some() + '[0]'])})")
                self.names.append(made)
            case 5:
                loss, made = self.some(), self.name()
                self.add(f"{made} = torch.zeros_like(x)")
                self.add(f"if {loss}.requires_grad and x.requires_grad:")
                kept = random.choice(("retain_graph", "create_graph")) if self.twice else "retain_graph"
                found = f"torch.autograd.grad({loss}.sum(), x, {kept}=True, allow_unused=True)[0]"
                self.add(f"found = {found}", 1)
                self.add(f"{made} = {made} if found is None else found.contiguous()", 1)
                self.names.append(made)
            case 6:
                tensor = self.some()
                self.add(f"if {tensor}.requires_grad:")
                self.add(f"{tensor}.sum().backward(retain_graph=True)", 1)
            case 7:
                made = self.name()
                self.add("with torch.autograd.graph.saved_tensors_hooks(packed, unpacked):")
                self.add(f"{made} = {self.some()} * {self.some()}", 1)
                self.names.append(made)
                if random.random() < 0.5:
                    self.compute(1)
            case 8:
                self.add(
                    f"say('requires', ({', '.join(f'{n}.requires_grad' for n in (self.some(), self.some()))}))"
                )
            case 9:
                self.add(f"say('history', {self.some()}.grad_fn is None)")
            case 10:
                made = self.name()
                self.add(
                    f"with torch.set_grad_enabled({random.choice(['True', 'False', 'x.requires_grad'])}):"
                )
                self.add(f"{made} = {self.some()} + {self.some()}", 1)
                self.names.append(made)
            case _:
                tensor = self.some()
                kind = random.choice(_MODULE_HOOKS).format(n=len(self.lines))
                made = self.name()
                self.add(f"handle = {kind}")
                self.add(f"{made} = MODULE({tensor})")
                if random.random() < 0.8:
                    self.add("handle.remove()")
                self.names.append(made)
                if Random(f"{kind} {made}").random() < 0.2:  # other programs stay what they were
                    self.write_behind(kind, tensor)

    def write_behind(self, kind: str, tensor: str) -> None:
        """A module with that hook keeps its result, which is written to."""
        self.add(
            "keeping = MODULE.register_forward_hook(lambda m, args, out: say('kept', KEPT.append(out.detach())))"
        )
        self.add(f"handle = {kind}")
        self.add(f"dead = MODULE({tensor})")
        self.add("with torch.no_grad():")
        self.add("dead[0].add_(1)", 1)
        self.add("say('kept', plain(KEPT.pop()))")
        self.add("handle.remove()")
        self.add("keeping.remove()")


HOOKS = (
    "{a}.register_hook(noting('hook {n}'))",
    "{a}.register_hook(scaling('scaling {n}', {f}))",
    "{a}.register_hook(lambda grad: grad * {f})",
    "{a}.retain_grad()",
    "torch.autograd.graph.register_multi_grad_hook(({a}, {b}), multi('multi {n}'))",
    "torch.autograd.graph.register_multi_grad_hook(({a}, {b}), multi('any {n}'), mode='any')",
    "x.register_post_accumulate_grad_hook(accumulated('accumulated {n}')) if x.is_leaf and x.requires_grad else None",
    "MODULE.weight.register_post_accumulate_grad_hook(accumulated('weight {n}'))",
    "MODULE.weight.register_hook(noting('weight hook {n}'))",
)
_MODULE_HOOKS = (
    "MODULE.register_forward_hook(lambda m, args, out: out * 2)",
    "MODULE.register_forward_hook(lambda m, args, out: say('forward {n}', 1))",
    "MODULE.register_forward_pre_hook(lambda m, args: (args[0] + 1,))",
    "MODULE.register_full_backward_hook(lambda m, i, o: node_hook('full {n}')(i, o))",
    "MODULE.register_full_backward_hook(lambda m, i, o: tuple(None if p is None else p * 2 for p in i))",
    "MODULE.register_full_backward_pre_hook(lambda m, o: tuple(p * 3 for p in o))",
)


def draw(random: Random, hooks: tuple[str, ...] = HOOKS, first: str = "") -> str:
    """The text of one program, which may register ``hooks``, with ``first`` as its first statement."""
    after = random.choice(AFTERS)
    body = _Body(random, hooks, after)
    if first:
        body.add(first)
    for _ in range(random.randint(2, 9)):
        body.statement()
    chosen = random.sample(body.names, min(len(body.names), random.randint(1, 3)))
    if body.names[-1] not in chosen:
        chosen.append(body.names[-1])
    results = ", ".join(name if random.random() < 0.7 else f"{name}.sum()" for name in chosen)
    lines = "\n".join(body.lines)
    program = f"def program(x, y):\n{lines}\n    return {results}\n"
    return f"{HEAD}\n\n{program}{WANTED}{after}\n{_calls(random, body.twice)}"


def _calls(random: Random, twice: bool) -> str:
    calls = []
    values = (*_VALUES, *_EDGES) if random.random() < 0.3 else _VALUES
    for rows in random.choice(((2, 2, 3), (2, 4, 1), (2, 3, 3))):
        x, y = (_tensor(random, rows, values) for _ in range(2))
        x_grad, y_grad = random.random() < 0.85, random.random() < 0.5
        ending = "" if random.random() < 0.85 else " * 1"
        calls.append(f"    lambda: (given({x}, {x_grad}, 'x'){ending}, given({y}, {y_grad}, 'y')),")
    hook = random.choice(
        (
            "",
            "",
            "",
            "tensor.register_hook(scaling('outside ' + name, 2))",
            "tensor.register_post_accumulate_grad_hook(accumulated('outside ' + name))",
        )
    )
    lines = ["def given(data, grad, name):", "    tensor = torch.tensor(data, requires_grad=grad)"]
    if hook:
        lines += ["    if grad:", f"        {hook}"]
    lines += ["    return tensor", "", "", "CALLS = [", *calls, "]", ""]
    if random.random() < 0.15:
        watched = ", ".join(random.choice(("watching", "None")) for _ in calls)
        lines += [f"CHANGES = [{watched}]", ""]
    return "\n".join(lines)


def _tensor(random: Random, rows: int, values: tuple[str, ...]) -> str:
    return (
        "["
        + ", ".join("[" + ", ".join(random.choice(values) for _ in range(3)) + "]" for _ in range(rows))
        + "]"
    )


_NEAR = (1e-5, 1e-4)  # gradients may be added in another order
_COMMON = frozenset({"grad version", "lines"})  # a captured backward has no lines of its own
_ORDER = _COMMON | {
    "grad layout",
    "order",
    "nodes",
    "saved",
    "own version",
    "version of results",
    "refused backward",
}
COMPARING = Comparing(
    {"eager": _COMMON, "aot_eager": _ORDER, "inductor": _ORDER},
    {"aot_eager": _NEAR, "inductor": (1e-4, 1e-4)},
    ("[AOT301]", "[AOT303]", "which may come of the results that have no gradient"),
    referee=True,
)
"""What docs/soundness.md gives up of gradients: under backends that compile ahead of time the order of hooks, versions
of what is summed in a backward, what is saved for it, the nodes behind the results of graphs, and that a backward is
refused whose saved tensors were overwritten."""


if __name__ == "__main__":
    main(draw, COMPARING)
