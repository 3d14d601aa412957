"""``fxstack doctor``: what this machine can compile, one check a line, each with what to do if it fails."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import click
import torch

from fx_interface import INTERFACE_VERSION, StackError
from fx_interface.plugins import list_backends
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.cli.output import as_json, say_json
from fxstack.options import default_cache_dir
from inductor_codegen.toolchain import cpp_compiler
from inductor_codegen.trusted import open_folder

PACKAGES = (
    "fx-interface",
    "guards",
    "dynamo-capture",
    "aot-autograd",
    "primtorch-decomps",
    "inductor-codegen",
    "fxstack-artifact",
    "fxstack",
)


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report; ``action`` is empty when all is well."""

    name: str
    found: str
    action: str = ""


def checks() -> Iterator[Check]:
    """Every check, in the order in which a compilation needs them."""
    supported = (3, 11) <= sys.version_info[:2] <= (3, 13)
    yield Check("Python", platform.python_version(), "" if supported else "use CPython 3.11, 3.12 or 3.13")
    yield Check("torch", torch.__version__)
    for name in PACKAGES:
        try:
            yield Check(name, version(name))
        except PackageNotFoundError:
            yield Check(name, "not installed", f"python -m pip install {name}")
    yield _compiler()
    yield Check("interface", ".".join(map(str, INTERFACE_VERSION)))
    yield Check("backends", ", ".join(info.name for info in list_backends()))
    yield _cache_folder()
    yield Check("GPU", torch.cuda.get_device_name() if torch.cuda.is_available() else "none")


def _compiler() -> Check:
    try:
        found = cpp_compiler.find_compiler()
        return Check("C++ compiler", f"{' '.join(found.command)}: {found.version}")
    except StackError as error:
        return Check("C++ compiler", "none", error.action)


def _cache_folder() -> Check:
    folder = default_cache_dir()
    try:
        with open_folder(folder, create=True):
            return Check("cache", str(folder))
    except OSError as error:
        reason = error.strerror or str(error)
        return Check("cache", f"{folder}: {reason}", "name a folder of your own in $FXSTACK_CACHE_DIR")


@click.command(short_help="What this machine can compile with; what to do.")
@as_json
def doctor(as_json: bool) -> int:
    """Say what this machine can compile with, and what to do where something is missing.

    Exit status: 0 if all is well, 1 if something is to be done.
    """
    found = list(checks())
    if as_json:
        say_json([{"name": one.name, "found": one.found, "to do": one.action} for one in found])
        return int(any(one.action for one in found))
    width = max(len(one.name) for one in found)
    for one in found:
        mark = click.style("!!", fg="red") if one.action else click.style("ok", fg="green")
        click.echo(f"{mark} {one.name.ljust(width)}  {one.found}")
        if one.action:
            click.echo(f"   {' ' * width}  to do: {one.action}")
    return int(any(one.action for one in found))
