"""What a program about objects knows of its object: how it is made, and which attributes it may have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

NUMBERS = ("0", "1", "-2", "3", "True", "2.5", "n")
NAMES = ("a", "b", "c", "d", "p", "q", "missing")


@dataclass
class Shape:
    """A class that a program has: its name, how an instance is made, and which attributes it may have."""

    name: str
    arguments: Sequence[str] = ()
    names: list[str] = field(default_factory=lambda: list(NAMES))
    methods: list[str] = field(default_factory=list)
    base: str = "object"

    def make(self, random: Random) -> str:
        if self.base == "call":  # an expression, not a class
            return self.name
        return f"{self.name}({', '.join(self.arguments)})"

    def prepared(self, random: Random) -> list[str]:
        return (
            [f"o.{random.choice(self.names)} = {random.choice(NUMBERS[:5])}"] if self.base == "object" else []
        )
