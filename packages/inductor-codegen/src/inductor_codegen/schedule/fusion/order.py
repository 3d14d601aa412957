"""Dependencies between the units that run one after the other (groups and library calls): reachability and
final order.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush


class Dependencies:
    """Which unit needs which, directly. A unit is any integer; ``span`` holds its least and greatest value
    number.
    """

    __slots__ = ("_exact", "_needs", "_span")

    def __init__(self, *, exact: bool = False) -> None:
        """``exact``: units may hold values from far apart, so that numbers do not tell what need not be searched."""
        self._exact = exact
        self._needs: dict[int, set[int]] = {}
        self._span: dict[int, tuple[int, int]] = {}

    def extend(self, unit: int, number: int) -> None:
        """``unit`` exists, and holds value ``number``."""
        span = self._span.get(unit)
        if span is None:
            self._span[unit] = (number, number)
            self._needs[unit] = set()
        elif number < span[0]:
            self._span[unit] = (number, span[1])
        elif number > span[1]:
            self._span[unit] = (span[0], number)

    def add(self, unit: int, needed: int) -> None:
        """``unit`` runs after ``needed``."""
        if unit != needed:
            self._needs[unit].add(needed)

    def needs(self, unit: int, needed: int) -> bool:
        """Whether ``unit`` needs ``needed`` directly."""
        return needed in self._needs[unit]

    def reaches(self, unit: int, targets: Iterable[int]) -> bool:
        """Whether ``unit`` needs one of ``targets``, through others too."""
        wanted = set(targets)
        if not wanted:
            return False
        lowest = min(self._span[target][0] for target in wanted)
        pending, seen = [unit], {unit}
        while pending:
            for needed in self._needs[pending.pop()]:
                if needed in wanted:
                    return True
                if needed not in seen and (self._exact or self._span[needed][1] > lowest):
                    seen.add(needed)
                    pending.append(needed)
        return False

    def reaches_around(self, unit: int, target: int) -> bool:
        """Whether ``unit`` needs ``target`` through others."""
        return any(
            needed != target and self.reaches(needed, (target,)) for needed in tuple(self._needs[unit])
        )

    def merge(self, unit: int, gone: int) -> None:
        """``unit`` takes over everything of ``gone``."""
        self._needs[unit] |= self._needs.pop(gone)
        self._needs[unit] -= {unit, gone}
        for needs in self._needs.values():
            if gone in needs:
                needs.discard(gone)
                needs.add(unit)
        self._needs[unit].discard(unit)
        low, high = self._span.pop(gone)
        self._span[unit] = (min(self._span[unit][0], low), max(self._span[unit][1], high))

    def sorted(self) -> list[int]:
        """All units, each after those it needs; among the ready ones the one whose last value comes first."""
        users: dict[int, list[int]] = {}
        missing = {unit: len(needs) for unit, needs in self._needs.items()}
        for unit, needs in self._needs.items():
            for needed in needs:
                users.setdefault(needed, []).append(unit)
        ready = [(self._span[unit][1], unit) for unit, count in missing.items() if count == 0]
        heapify(ready)
        found: list[int] = []
        while ready:
            _, unit = heappop(ready)
            found.append(unit)
            for user in users.get(unit, ()):
                missing[user] -= 1
                if missing[user] == 0:
                    heappush(ready, (self._span[user][1], user))
        assert len(found) == len(self._needs), "units need each other in a circle"
        return found
