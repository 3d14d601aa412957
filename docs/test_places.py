"""What pages name exists: files and folders in ``capture.md``, ``soundness.md`` and tables of ``contributing.md``."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PATH = re.compile(r"[\w.*-]+(/[\w.*-]+)*(\.(py|c|h|md)|/)|[\w-]+(/[\w.-]+)+")


@cache
def _places() -> tuple[frozenset[str], frozenset[str]]:
    """Files and folders of the repository, each with a slash in front."""
    files, folders = set(), set()
    for part in ("benchmarks", "docs", "examples", "integration_tests", "packages", "tools"):
        for folder, inside, names in os.walk(ROOT / part):
            inside[:] = [name for name in inside if not name.startswith((".", "__"))]
            place = f"/{Path(folder).relative_to(ROOT).as_posix()}"
            folders.add(place)
            files.update(f"{place}/{name}" for name in names)
    return frozenset(files), frozenset(folders)


def exists(place: str) -> bool:
    """Whether the repository has a file, or with a slash at the end a folder, whose path ends in this one."""
    files, folders = _places()
    known = folders if place.endswith("/") else files | folders
    wanted = "*/" + place.rstrip("/")
    return any(fnmatch(path, wanted) for path in known)


def named(page: str, *, tables_only: bool = False) -> Iterator[str]:
    """What stands in backquotes and is a path, outside of code blocks."""
    text = re.sub(r"^```.*?^```", "", (ROOT / "docs" / page).read_text(encoding="utf-8"), flags=re.M | re.S)
    lines = [line for line in text.splitlines() if line.startswith("|") or not tables_only]
    for words in re.findall(r"`([^`]+)`", "\n".join(lines)):
        if PATH.fullmatch(words):
            yield words


def test_what_is_no_place_is_told() -> None:
    assert exists("docs/test_places.py")
    assert exists("tests/interpreter/opcodes/test_*.py")
    assert exists("guard_kinds/")
    for wrong in ("docs/test_place.py", "test_places.py/", "interpreter/opcode/", "est_places.py"):
        assert not exists(wrong)


@pytest.mark.parametrize(
    "page, tables_only, at_least",
    [("capture.md", False, 25), ("soundness.md", False, 40), ("contributing.md", True, 20)],
)
def test_files_and_folders_exist(page: str, tables_only: bool, at_least: int) -> None:
    places = list(named(page, tables_only=tables_only))
    assert len(places) >= at_least
    assert [place for place in places if not exists(place)] == []


def test_stages_of_capture_are_folders() -> None:
    """The headings of ``capture.md`` name them in order; what the text names inside of them can be imported."""
    text = (ROOT / "docs" / "capture.md").read_text(encoding="utf-8")
    package = ROOT / "packages" / "dynamo-capture" / "src" / "dynamo_capture"
    headings = [name for line in re.findall(r"^## .*$", text, re.M) for name in re.findall(r"`(\w+)`", line)]
    assert len(headings) > 8
    assert [name for name in headings if not (package / name).is_dir()] == []
    inside = re.findall(rf"`((?:{'|'.join(headings)})(?:\.\w+)+)`", text)
    assert len(inside) > 5
    for dotted in inside:
        module, _, name = f"dynamo_capture.{dotted}".rpartition(".")
        if not hasattr(importlib.import_module(module), name):
            importlib.import_module(f"{module}.{name}")
