"""What this machine can compile: one check a line, each with what to do if it fails."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import torch

from fx_interface import INTERFACE_VERSION, StackError
from fx_interface.plugins import list_backends
from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.toolchain import cpp_compiler

PACKAGES = (
    "fx-interface",
    "guards",
    "dynamo-capture",
    "aot-autograd",
    "primtorch-decomps",
    "inductor-codegen",
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
    yield Check("GPU", torch.cuda.get_device_name() if torch.cuda.is_available() else "none")


def _compiler() -> Check:
    try:
        return Check("C++ compiler", str(cpp_compiler.find_compiler()))
    except StackError as error:
        return Check("C++ compiler", "none", error.action)
