"""The names that a block of a drawn program may use, and expressions of them."""

from __future__ import annotations

from random import Random


class Scope:
    """The names that a block may use: tensors of the shape of ``x``, ``indices`` (tensors of integers), Python
    ``numbers`` and ``lists``. ``budget``: how many statements are left to draw.
    ``is_called``: in a function that the program calls. A block inside has its own scope."""

    def __init__(
        self,
        random: Random,
        functions: list[str],
        generators: list[str],
        depth: int,
        budget: int,
        parent: Scope | None = None,
    ) -> None:
        self.random = random
        self.functions = functions
        self.generators = generators
        self.depth = depth
        self.budget = budget
        self.tensors: list[str] = list(parent.tensors) if parent else []
        self.indices: list[str] = list(parent.indices) if parent else []
        self.numbers: list[str] = list(parent.numbers) if parent else []
        self.lists: list[str] = list(parent.lists) if parent else []
        self.in_loop = bool(parent and parent.in_loop)
        self.is_called = bool(parent and parent.is_called)
        self._count = parent._count if parent else [0]

    def named(self, tensor: str) -> Scope:
        """This scope, with one more tensor."""
        self.tensors.append(tensor)
        return self

    def inside(self, loop: bool = False) -> Scope:
        """The scope of a block inside, with a part of the budget."""
        share = min(self.budget, self.random.randint(1, 4))
        self.budget -= share
        made = Scope(self.random, self.functions, self.generators, self.depth + 1, share, self)
        made.in_loop = self.in_loop or loop
        return made

    def new(self, prefix: str) -> str:
        self._count[0] += 1
        return f"{prefix}{self._count[0]}"

    def pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def tensor(self) -> str:
        """An expression for a tensor of the shape of ``x``."""
        t, u = self.pick(*self.tensors), self.pick(*self.tensors)
        return self.pick(
            t,
            t,
            f"{t}.sin()",
            f"({t} * 2 - 1)",
            f"({t} + {u})",
            f"torch.relu({t} @ W)",
            f"{t}.detach()",
            f"({t} + B)",
            f"({t} * {self.number()})",
            f"{t}.clone()",
            f"torch.where({u} > 0, {t}, {u})",
            f"torch.full_like({t}, 0.5)",
            f"({t} * torch.ones(3))",
            f"{t}.cumsum(0)",
        )

    def number(self) -> str:
        """An expression for a small integer."""
        index = self.pick(*self.indices)
        t = self.pick(*self.tensors)
        return self.pick(
            *(self.numbers or ["2"]),
            str(self.random.randint(0, 3)),
            f"int({index}.sum()) % 4",
            f"len({index})",
            f"{index}.max().item()",
            f"int(({t} > 0).sum())",
            f"{t}.shape[0]",
            f"({index} > 0).sum().item()",
            "BOX.n % 3",
            "len(LOG) % 4",
            "TOTAL % 3",
        )

    def items(self) -> str:
        """An expression for a list of integers."""
        index, t = self.pick(*self.indices), self.pick(*self.tensors)
        number = self.number()
        return self.pick(
            *(self.lists or ["[1, 2]"]),
            f"{index}.tolist()",
            f"{index}[{index} > 0].tolist()",
            f"torch.nonzero({index}).flatten().tolist()",
            f"({t}[:, 0] > 0).tolist()",
            f"list(range({number}))",
            f"[len(p) for p in torch.split({index}, 2)]",
            f"[int(p) for p in {index}]",
            f"[brk(p) for p in {index}.tolist()]",
            f"[p for p in range({number}) if brk(p) or p]",
            f"sorted({index}.tolist(), key=lambda p: -p)",
        )

    def condition(self) -> str:
        t = self.pick(*self.tensors)
        return self.pick(
            f"{self.number()} > 1",
            f"{t}.sum() > 0",
            f"bool(({t} > 1).any())",
            f"{self.number()} % 2",
            "brk(BOX.n) % 2",
            f"{t}.requires_grad",
            "torch.is_grad_enabled()",
            f"len({self.items()}) > 2",
        )
