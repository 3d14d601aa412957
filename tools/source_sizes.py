"""Files and functions of the packages that are too long to be read at once.

A file has at most 400 lines, a function or method at most 60, decorators and docstring counted.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from source_check import check, violations_of

LONGEST_FILE = 400
LONGEST_FUNCTION = 60


def too_long(text: str) -> Iterator[tuple[int, str]]:
    """Line, and what is longer than it may be."""
    count = len(text.splitlines())
    if count > LONGEST_FILE:
        yield 1, f"a file of {count} lines"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            length = (node.end_lineno or node.lineno) - first + 1
            if length > LONGEST_FUNCTION:
                yield node.lineno, f"{node.name} has {length} lines"


if __name__ == "__main__":
    nothing = f"no file over {LONGEST_FILE} lines, no function over {LONGEST_FUNCTION}"
    sys.exit(check(__doc__, violations_of(too_long, ()), nothing))
