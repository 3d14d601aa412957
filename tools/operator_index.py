"""Writes primtorch_decomps/index.py: ``python tools/operator_index.py [--check]``."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import textwrap
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from primtorch_decomps import decomps, registry, rules

_HEAD = '''"""Which module declares an operator's formula or rule; written by ``tools/operator_index.py``.

Names are without ``aten.``. Operators on lists depend on torch's version and stand under ``BY_PREFIX``.
"""

'''
_LISTS = "_foreach_"
_WIDTH = 98


class _Noting(dict[str, Any]):
    """A registry that notes which module was running when a name was declared."""

    def __init__(self) -> None:
        super().__init__()
        self.homes: dict[str, list[str]] = defaultdict(list)

    def __setitem__(self, name: str, entry: Any) -> None:
        super().__setitem__(name, entry)
        frame = sys._getframe(1)
        while frame.f_code.co_name != "<module>":
            assert frame.f_back is not None
            frame = frame.f_back
        home, short = frame.f_globals["__name__"], name.removeprefix("aten.")
        if not short.startswith(_LISTS):
            self.homes[home].append(short)

    def text(self, name: str) -> str:
        """The source of a table: module -> names."""
        lines = [f"{name} = {{"]
        for home in sorted(self.homes):
            names = " ".join(sorted(self.homes[home]))
            filled = textwrap.wrap(names, _WIDTH, break_long_words=False, break_on_hyphens=False)
            if len(filled) == 1 and len(home) + len(names) < _WIDTH:
                lines.append(f'    "{home}": "{names}",')
            else:
                lines += [f'    "{home}": (', *(f'        "{line} "' for line in filled), "    ),"]
        return "\n".join([*lines, "}", ""])


def text() -> str:
    """The source of ``index.py``; only in a process that has loaded no family yet."""
    registry._DECOMPOSITIONS = decompositions = _Noting()
    registry._RULES = ruled = _Noting()
    for package in (decomps, rules):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    lists = f'BY_PREFIX = {{"{_LISTS}": "primtorch_decomps.decomps.arithmetic.foreach"}}\n'
    return "\n".join([_HEAD + decompositions.text("DECOMPOSED"), ruled.text("RULED"), lists])


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file, or with ``--check`` compare it; 1 if it differs."""
    parser = argparse.ArgumentParser(prog="tools/operator_index.py", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether the file is up to date")
    options = parser.parse_args(arguments)
    file = Path(registry.__file__).with_name("index.py")
    made = text()
    if not options.check:
        file.write_text(made)
        return 0
    if file.exists() and file.read_text() == made:
        return 0
    print(f"{file} is out of date: python tools/operator_index.py")
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
