"""Generates docs/torch-compile.md, what each part of torch.compile's surface is here, from the tables in the code."""

from __future__ import annotations

import argparse
import functools
import importlib
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType

from workspace import BY_NAME, ROOT

PAGE = ROOT / "docs" / "torch-compile.md"
TEXT = ROOT / "tools" / "torch_compile_page.md"
SOURCE = BY_NAME["fxstack"].source
PACKAGE = "fxstack.torch_compile"


@functools.cache
def tables(name: str) -> ModuleType:
    """A module of the tables, loaded without the package around it (which would need all of the stack)."""
    sys.path.append(str(BY_NAME["fx-interface"].source.parent))  # where nothing is installed, as for lint
    loaded = {key: module for key, module in sys.modules.items() if key.partition(".")[0] == "fxstack"}
    for key in loaded:
        del sys.modules[key]
    package = ModuleType("fxstack")
    package.__path__ = [str(SOURCE)]
    sys.modules["fxstack"] = package
    try:
        return importlib.import_module(f"{PACKAGE}.{name}")
    finally:
        for key in [key for key in sys.modules if key.partition(".")[0] == "fxstack"]:
            del sys.modules[key]
        sys.modules.update(loaded)


def page() -> str:
    """The whole page."""
    head, _, tail = TEXT.read_text().partition("<!-- tables -->\n")
    return head + "\n".join([*_entries(), *_options(), ""]) + tail


def _entries() -> Iterator[str]:
    for title, column, entries in tables("table").TABLES:
        yield from (f"## {title}", "", f"| {column} | here | |", "|---|---|---|")
        yield from (f"| `{entry.name}` | {entry.state} | {entry.here} |" for entry in entries)
        yield ""


def _options() -> Iterator[str]:
    yield from ("## Options of stock's code generator", "")
    yield from ("Those that are passed on to an option of ours:", "", "| option | ours |", "|---|---|")
    for name, passed in tables("passed_on").PASSED_ON.items():
        yield f"| `{name}` | {passed.here} |"
    for family in tables("option_families").FAMILIES:
        yield from ("", f"### {family.title}", "")
        state = "Done" if family.is_done else "Accepted, with a warning where a value asks for something"
        yield from (f"{state}: {family.here}.", "", ", ".join(f"`{name}`" for name in family.names))


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page, or with ``--check`` fail where it is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    checking = parser.parse_args(argv).check
    if not checking:
        PAGE.write_text(page())
    if not PAGE.exists() or PAGE.read_text() != page():
        print(f"{PAGE.relative_to(ROOT)} is out of date: run python tools/torch_compile_page.py")
        return 1
    print("the page about torch.compile agrees with the tables")
    return 0


if __name__ == "__main__":
    sys.exit(main())
