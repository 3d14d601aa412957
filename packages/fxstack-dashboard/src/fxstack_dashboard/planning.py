"""Which rows a run has: suites by models, backends, phases and devices, all known before anything is measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import torch

from fx_interface.plugins import list_backends
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack_dashboard.errors import DashboardError
from fxstack_dashboard.measuring.backends import FAMILIES
from fxstack_dashboard.storing.records import Key
from fxstack_dashboard.suites.registry import SUITES, load_suite
from fxstack_dashboard.suites.workload import Workload


@dataclass(frozen=True, slots=True)
class Plan:
    """The rows in order; the files of suites that are files, by the suite's name; what was left out, and why."""

    keys: tuple[Key, ...]
    files: Mapping[str, str]
    left_out: Mapping[str, str]


def plan(
    suites: Sequence[str],
    models: Sequence[str],
    backends: Sequence[str],
    phases: Sequence[str],
    devices: Sequence[str],
    skip_missing: bool = False,
) -> Plan:
    """All rows. ``models`` are patterns, none: all.

    DashboardError DSH101 to DSH105: a suite, library, backend or device that is not here; DSH106: no row is left.
    """
    names = list(dict.fromkeys(map(backend_name, backends)))
    for device in devices:
        _check_device(device)
    keys: list[Key] = []
    files: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for given in suites:
        why = SUITES[given].missing() if skip_missing and given in SUITES else None
        if why is not None:
            left_out[given] = why
            continue
        suite, workloads = load_suite(given)
        if given not in SUITES:
            if suite in SUITES or suite in files:
                raise DashboardError("DSH103", f"{given} calls its suite {suite!r}, which another is called")
            files[suite] = str(Path(given).resolve())
        keys += _rows(suite, workloads, models, names, phases, devices)
    if not keys and not left_out:
        raise DashboardError(
            "DSH106", "no row is left by these options", action="fxstack dashboard suites lists models"
        )
    return Plan(tuple(dict.fromkeys(keys)), files, left_out)


def _rows(
    suite: str,
    workloads: Mapping[str, Workload],
    models: Sequence[str],
    backends: Sequence[str],
    phases: Sequence[str],
    devices: Sequence[str],
) -> Iterator[Key]:
    for device in devices:
        for name, workload in workloads.items():
            if models and not any(fnmatchcase(name, pattern) for pattern in models):
                continue
            for phase in phases:
                for backend in backends:
                    if phase in workload.phases:
                        yield Key(suite, name, backend, phase, device)


def backend_name(given: str) -> str:
    """The full name of a backend: a plug-in's own name is one of ``fxstack``'s. DashboardError DSH104 if unknown."""
    plugins = sorted({info.name for info in list_backends()})
    family, _, inner = given.partition(":")
    if given in FAMILIES or (family == "fxstack" and inner in plugins):
        return given
    if family == "stock" and inner:
        from fxstack_dashboard.adapters.stock import stock_backends  # loads stock's compiler

        if inner in stock_backends():
            return given
    if given in plugins:
        return f"fxstack:{given}"
    listed = ", ".join([*FAMILIES, *(f"fxstack:{name}" for name in plugins)])
    raise DashboardError(
        "DSH104",
        f"no backend is named {given!r}",
        action=f"use one of {listed}, or stock:NAME for one of torch's",
    )


def _check_device(device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        raise DashboardError(
            "DSH105", "this machine has no GPU that torch can use", action="use --device cpu"
        )
