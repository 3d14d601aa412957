"""Programs between whose calls everything changes that a trace reads: names, classes, functions, modules, modes, hooks.

A program is some statements that read state in many ways. Before each call one to three changes are made, some before
the first, some for good (they are made to the program's own module, of which each way of running has its own) and some,
of what the process shares (builtins, torch's functions, modes), for one call.
"""

from __future__ import annotations

from random import Random

from change_tables import HEAD, LASTING, PASSING, READS
from driver import Comparing, main
from shrinking import KEPT

ARGUMENTS = (
    "torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()",
    "torch.linspace(-1, 1, 6).reshape(2, 3)",
    "torch.linspace(-2, 2, 9).reshape(3, 3).requires_grad_()",
    "torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(2, 3)",
)


_VERSIONS = frozenset({"version", "own version"})
COMPARING = Comparing(
    {"inductor": _VERSIONS, "aot_eager": _VERSIONS},
    {"inductor": (1e-4, 1e-5)},
    gradients={"inductor": (1e-4, 1e-4)},  # of sums whose terms cancel
)
"""Version counters of results are the matter of another adversary."""


def draw(random: Random) -> str:
    """The text of one program."""
    reads = random.sample(READS, random.randint(2, 6))
    body = "\n    ".join(["h = x", *reads, "return h"])
    calls, changes = [], []
    usual = random.choice(ARGUMENTS)
    for number in range(random.randint(3, 5)):
        calls.append(usual if random.random() < 0.8 else random.choice(ARGUMENTS))
        changes.append(_change(random) if number or random.random() < 0.3 else "None")
    lines = [HEAD, KEPT, "GIVEN = 2.0", "def program(x):", f"    {body}", ""]
    lines += ["CALLS = [", *(f"    lambda: ({call},)," for call in calls), "]"]
    lines += ["CHANGES = [", *(f"    {change}," for change in changes), "]", ""]
    return "\n".join(lines)


def _change(random: Random) -> str:
    kinds = [
        random.choice(LASTING if random.random() < 0.7 else PASSING)
        for _ in range(random.choice((1, 1, 2, 3)))
    ]
    kinds.sort(key=PASSING.__contains__)
    return kinds[0] if len(kinds) == 1 else f"together({', '.join(kinds)})"


if __name__ == "__main__":
    main(draw, COMPARING)
