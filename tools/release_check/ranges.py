"""The ends of the declared ranges of dependencies: which versions a release has to be tried with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from workspace import BY_NAME, PACKAGES, Package

SEPARATE = {"torch"} | set(BY_NAME)
"""torch is a matter of the environment, and packages of the repository come from the wheels that are tried."""

PYTHONS = ("3.11", "3.12", "3.13")
TORCHES = ("2.11.0", "2.12.0", "2.13.0")
"""The newest of each minor version that the packages' metadata allow."""

NO_WHEELS_BEFORE = {
    ("safetensors", "3.13"): "0.4.4",
    ("numpy", "3.13"): "2.1",
}
"""Lower versions are allowed, and have no wheel for that CPython: (dependency, CPython) -> the first that has one."""


def lowest(packages: Iterable[Package], python: str) -> dict[str, str]:
    """Every dependency from elsewhere at the lower end of its range; the highest such end where several declare it."""
    found: dict[str, str] = {}
    for package in packages:
        for name, span in package.requirements.items():
            if name in SEPARATE:
                continue
            bound = re.search(r">=\s*([\d.]+)", span)
            if bound is None:
                raise ValueError(f"{package.name} states no lower end for {name}{span}")
            first = NO_WHEELS_BEFORE.get((name, python), "0")
            found[name] = max(found.get(name, "0"), bound[1], first, key=numbers)
    return found


def constraints(chosen: Mapping[str, str]) -> str:
    """The text of a file for ``pip install --constraint``."""
    return "".join(f"{name}=={version}\n" for name, version in sorted(chosen.items()))


def numbers(version: str) -> tuple[int, ...]:
    """A version to compare by: "2.13.0" -> (2, 13, 0)."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def outside_of_ranges() -> list[str]:
    """Versions to try that a package does not allow, and ends of its ranges that are not among them."""
    problems = []
    for package in PACKAGES:
        for what, span, tried in (
            ("torch", package.requirements.get("torch"), TORCHES),
            ("CPython", package.metadata["project"]["requires-python"], PYTHONS),
        ):
            ends = re.fullmatch(r">=([\d.]+),<(\d+)\.(\d+)", span or "")
            if span is None:
                continue
            allowed = (ends[1], f"{ends[2]}.{int(ends[3]) - 1}") if ends else (span, span)
            if [numbers(end)[:2] for end in allowed] != [numbers(end)[:2] for end in (tried[0], tried[-1])]:
                problems.append(f"{package.name} wants {what}{span}; tried are {', '.join(tried)}")
    return problems
