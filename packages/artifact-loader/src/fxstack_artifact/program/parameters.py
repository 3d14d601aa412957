"""From a call to the leaves of its arguments: binding by position and by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fxstack_artifact.errors import ContractError, unreadable
from fxstack_artifact.program.structure import leaf_names, taker

POSITIONAL, EITHER, KEYWORD = "positional", "either", "keyword"
"""How a parameter may be passed."""


class Parameters:
    """The parameters of an entry point, as a list of ``{"name", "kind", "node"}``; ``optional`` ones have ``true``."""

    def __init__(self, described: Sequence[Mapping[str, Any]]) -> None:
        self._names = [str(item["name"]) for item in described]
        if len(set(self._names)) != len(self._names):
            raise unreadable("two parameters have one name")
        kinds = [item["kind"] for item in described]
        if not set(kinds) <= {POSITIONAL, EITHER, KEYWORD}:
            raise unreadable("a parameter is of an unknown kind")
        self._positional = [i for i, kind in enumerate(kinds) if kind != KEYWORD]
        self._by_name = {self._names[i]: i for i, kind in enumerate(kinds) if kind != POSITIONAL}
        self._optional = frozenset(i for i, item in enumerate(described) if item.get("optional") is True)
        self._takers = [taker(item["node"], name) for item, name in zip(described, self._names, strict=True)]
        self.leaf_names = [
            found
            for item, name in zip(described, self._names, strict=True)
            for found in leaf_names(item["node"], name)
        ]
        self._is_flat = all(set(item["node"]) == {"leaf"} for item in described)

    def leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sequence[Any]:
        """The leaves of a call's arguments. ContractError FXA301, or FXA311 for another constant."""
        if not kwargs and self._is_flat and len(args) == len(self._positional) == len(self._names):
            return args
        found: list[Any] = []
        given = self._bound(args, kwargs)
        for i, take in enumerate(self._takers):
            if i in given:
                take(given[i], found)
            elif i not in self._optional:
                raise ContractError("FXA301", f"the argument {self._names[i]} is missing", self._listed())
        return found

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, Any]:
        if len(args) > len(self._positional):
            raise ContractError(
                "FXA301",
                f"{len(args)} positional arguments were given, the artifact takes {len(self._positional)}",
                self._listed(),
            )
        given = dict(zip(self._positional, args, strict=False))
        for name, value in kwargs.items():
            i = self._by_name.get(name)
            if i is None or i in given:
                what = "was given twice" if i is not None else "was not there when the artifact was made"
                raise ContractError("FXA301", f"the argument {name} {what}", self._listed())
            given[i] = value
        return given

    def _listed(self) -> str:
        return f"the artifact takes: {', '.join(self._names) or 'nothing'}"
