"""Discovery of what installed distributions register as entry points: backends, checked by version, and shape rules."""

from __future__ import annotations

import difflib
import functools
import sys
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from fx_interface.backend import ENTRY_POINT_GROUP, INTERFACE_VERSION, Backend
from fx_interface.errors import IncompatibleInterfaceError, PluginLoadError, UnknownBackendError
from fx_interface.operators import OperatorLibrary
from fx_interface.python_runtime.quick_dataclasses import dataclass

OPERATORS_GROUP = "fx_interface.operators"
"""Entry points whose objects are an ``OperatorLibrary``."""


@dataclass(frozen=True, slots=True)
class BackendInfo:
    """A registered backend: its name, the object it names as ``module:attribute``, and who installed it."""

    name: str
    value: str
    distribution: str


def list_backends() -> tuple[BackendInfo, ...]:
    """Every registered backend, by name. Loads none of them."""
    found = {(entry.name, entry.value): entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
    infos = [BackendInfo(entry.name, entry.value, _distribution(entry)) for entry in found.values()]
    return tuple(sorted(infos, key=lambda info: (info.name, info.value)))


def load_backend(name: str) -> Backend:
    """The backend registered as ``name``, checked against this interface version.

    UnknownBackendError FXI202 lists the known names; IncompatibleInterfaceError FXI201 names both versions;
    PluginLoadError FXI203 says why a plug-in does not import, FXI204 that two distributions claim one name.
    """
    return _load_backend(name, tuple(sys.path))


@functools.cache
def _load_backend(name: str, path: tuple[str, ...]) -> Backend:
    """What ``load_backend`` finds; reading the entry points of all distributions on ``path`` costs milliseconds."""
    found = {entry.value: entry for entry in entry_points(group=ENTRY_POINT_GROUP, name=name)}
    if not found:
        known = sorted({info.name for info in list_backends()})
        near = difflib.get_close_matches(name.lower(), known, n=1)
        advice = f"did you mean {near[0]!r}? Else " if near else ""
        raise UnknownBackendError(
            "FXI202",
            f"no backend is named {name!r}; registered: {', '.join(known) or 'none'}",
            action=f"{advice}install the distribution that provides it, or pass the backend itself",
        )
    if len(found) > 1:
        claims = ", ".join(f"{value} of {_distribution(entry)}" for value, entry in sorted(found.items()))
        raise PluginLoadError("FXI204", f"the backend name {name!r} is registered twice: {claims}")
    (entry,) = found.values()
    backend = _load(entry)
    if not callable(backend):
        raise PluginLoadError(
            "FXI203", f"the backend {entry.name!r} ({entry.value}) is not callable: {backend!r}"
        )
    check_interface_version(backend, name, _distribution(entry))
    return cast(Backend, backend)


def load_operator_library() -> OperatorLibrary | None:
    """The shape rules that an installed distribution registers, or None.

    PluginLoadError FXI203 says why they do not load, FXI204 that two distributions register some.
    """
    found = {entry.value: entry for entry in entry_points(group=OPERATORS_GROUP)}
    if len(found) > 1:
        claims = ", ".join(f"{value} of {_distribution(entry)}" for value, entry in sorted(found.items()))
        raise PluginLoadError(
            "FXI204", f"several libraries of operators are registered: {claims}", action="pass one"
        )
    for entry in found.values():
        library = _load(entry)
        if callable(getattr(library, "infer", None)):
            return cast(OperatorLibrary, library)
        raise PluginLoadError("FXI203", f"{entry.value} is no library of operators: {library!r}")
    return None


def check_interface_version(backend: Any, name: str, distribution: str) -> None:
    """Raise IncompatibleInterfaceError FXI201 unless ``backend.interface_version`` works with this interface."""
    wanted = getattr(backend, "interface_version", None)
    if is_compatible(wanted):
        return
    here = ".".join(map(str, INTERFACE_VERSION))
    theirs = ".".join(map(str, wanted)) if isinstance(wanted, tuple) else repr(wanted)
    raise IncompatibleInterfaceError(
        "FXI201",
        f"the backend {name!r} of {distribution} is written for interface version {theirs}; this is version {here}",
        action=f"install a version of {distribution} for interface {here}, or another fx-interface",
    )


def is_compatible(wanted: Any) -> bool:
    """Whether a plug-in written for version ``wanted`` works here; before 1.0 the minor numbers must be equal."""
    match wanted:
        case (int() as major, int() as minor):
            here_major, here_minor = INTERFACE_VERSION
            return major == here_major and (minor == here_minor or (major >= 1 and minor < here_minor))
    return False


def _load(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except Exception as error:
        raise PluginLoadError(
            "FXI203",
            f"the plug-in {entry.name!r} ({entry.value} of {_distribution(entry)}) does not load: {error!r}",
        ) from error


def _distribution(entry: EntryPoint) -> str:
    return "an unknown distribution" if entry.dist is None else entry.dist.name
