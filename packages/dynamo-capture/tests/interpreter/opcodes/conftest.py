"""What the sources declare by ``@opcode`` and ``@intrinsic``, read without running them: they need torch."""

from __future__ import annotations

import ast
import dis
import opcode
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

import dynamo_capture.interpreter.opcodes

FOLDER = Path(dynamo_capture.interpreter.opcodes.__file__).parent


def _declarations(decorator: str) -> Iterator[tuple[str, dict[str, object]]]:
    for path in sorted(FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for call in getattr(node, "decorator_list", ()):
                if isinstance(call, ast.Call) and getattr(call.func, "id", None) == decorator:
                    settings = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
                    for name in call.args:
                        yield ast.literal_eval(name), settings


def _handled() -> list[str]:
    """Opcodes that are declared for the running version, once for each declaration."""
    return [
        name
        for name, settings in _declarations("opcode")
        if settings.get("since", (3, 11)) <= sys.version_info[:2] <= settings.get("until", (3, 99))
    ]


def _intrinsics() -> list[str]:
    """Intrinsic functions that are declared."""
    return [name for name, _ in _declarations("intrinsic")]


def _existing() -> set[str]:
    """The instructions that code of the running version may hold."""
    derived = set(getattr(opcode, "_specialized_opmap", ())) | set(
        getattr(opcode, "_specialized_instructions", ())
    )
    return {
        name
        for name, number in dis.opmap.items()
        if number <= 255 and not name.startswith("INSTRUMENTED_") and name not in derived
    }


@pytest.fixture(scope="session")
def declared():
    """``handled``: opcodes declared for the running version, ``existing``: those that it has, ``intrinsics``."""
    return SimpleNamespace(handled=_handled(), existing=_existing(), intrinsics=_intrinsics())
