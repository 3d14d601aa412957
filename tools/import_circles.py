"""Circles of modules that import each other, of three kinds, and folders that hold too many modules.

Files: every import counts, at the top, in functions, and for types alone. A file in no circle can be read without
those that import it. Folders: what lies in one folder, files and sub-folders with all that they hold, each taken as
one. Without circles there, the members of a folder can be put in an order in which each imports earlier ones only.
First imports: what happens when a module is imported, which runs the ``__init__`` of each package around what it
imports. Without circles there, each module can be the first that a process imports.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from workspace import PACKAGES

MOST = 12
"""How many modules one folder may hold."""


def modules(sources: Path) -> dict[str, Path]:
    """The modules below a folder of sources, by name; a package has the name of its ``__init__``."""
    found = {}
    for path in sorted(sources.rglob("*.py")):
        parts = path.relative_to(sources).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(known: Mapping[str, Path]) -> dict[str, set[str]]:
    """For each file those that it imports anywhere. What an ``__init__`` gives out is not followed."""
    files = {name: path for name, path in known.items() if path.name != "__init__.py"}
    return {
        name: {t for node in ast.walk(ast.parse(path.read_text())) for t in _named(node, known) if t in files}
        - {name}
        for name, path in files.items()
    }


def folder_imports(known: Mapping[str, Path]) -> dict[str, dict[str, set[str]]]:
    """For each folder, for each of its members those that it imports. Importing a package is importing its face."""
    folders: dict[str, dict[str, set[str]]] = {}
    for name, path in known.items():
        if path.name == "__init__.py":
            continue
        for target in {t for node in ast.walk(ast.parse(path.read_text())) for t in _named(node, known)}:
            here, there = name.split("."), target.split(".")
            pairs = enumerate(zip(here, there, strict=False))
            shared = next((length for length, (ours, theirs) in pairs if ours != theirs), None)
            if shared is not None:
                members = folders.setdefault(".".join(here[:shared]), {})
                members.setdefault(here[shared], set()).add(there[shared])
                members.setdefault(there[shared], set())
    return folders


def crowded(known: Mapping[str, Path]) -> dict[str, int]:
    """Folders with more than ``MOST`` modules of their own, and how many they have."""
    found: dict[str, int] = {}
    for name, path in known.items():
        if path.name not in ("__init__.py", "__about__.py"):
            folder = name.rpartition(".")[0]
            found[folder] = found.get(folder, 0) + 1
    return {folder: count for folder, count in found.items() if count > MOST}


def first_imports(known: Mapping[str, Path]) -> dict[str, set[str]]:
    """For each module those that importing it imports at once, packages around them included."""
    return {
        name: {ran for node in _at_once(path) for t in _named(node, known) for ran in _run_by(t, name, known)}
        for name, path in known.items()
    }


def _at_once(path: Path) -> Iterator[ast.AST]:
    pending: list[ast.AST] = [ast.parse(path.read_text())]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending.extend(node.orelse)
            continue
        yield node
        pending.extend(ast.iter_child_nodes(node))


def _named(node: ast.AST, known: Mapping[str, Path]) -> list[str]:
    """The modules that an import names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if alias.name in known]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        inside = [f"{node.module}.{alias.name}" for alias in node.names]
        return [target for name in inside if (target := name if name in known else node.module) in known]
    return []


def _run_by(target: str, importer: str, known: Mapping[str, Path]) -> Iterator[str]:
    """What an import of ``target`` runs: itself, and the packages around it that the importer is not in."""
    parts = target.split(".")
    for length in range(1, len(parts) + 1):
        found = ".".join(parts[:length])
        is_around = importer == found or importer.startswith(f"{found}.")
        if found in known and not is_around:
            yield found


def circles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """The sets of modules that reach each other, the largest first (Tarjan's strongly connected components)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        stack.append(name)
        for other in sorted(edges[name]):
            if other not in order:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in stack:
                lowest[name] = min(lowest[name], order[other])
        if lowest[name] == order[name]:
            place = stack.index(name)
            if len(stack) - place > 1:
                found.append(sorted(stack[place:]))
            del stack[place:]

    for name in edges:
        if name not in order:
            visit(name)
    return sorted(found, key=len, reverse=True)


def main() -> int:
    """Print the circles and crowded folders; with ``--check`` the exit status is 1 if something must not be so."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="exit with 1 if there is a fault")
    options = parser.parse_args()
    known = {name: path for package in PACKAGES for name, path in modules(package.folder / "src").items()}
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 4 * len(known)))
    of_files, of_first = circles(imports(known)), circles(first_imports(known))
    folders = {folder: circles(members) for folder, members in folder_imports(known).items()}
    of_folders = [(folder, circle) for folder, found in sorted(folders.items()) for circle in found]
    for circle in of_files:
        print(f"{len(circle)} files import each other: {', '.join(circle)}")
    for folder, circle in of_folders:
        print(f"in {folder or 'the sources'} {len(circle)} members import each other: {', '.join(circle)}")
    for circle in of_first:
        print(f"{len(circle)} modules need each other to be imported: {', '.join(circle)}")
    of_crowds = crowded(known)
    for folder, modules_in_it in of_crowds.items():
        print(f"{folder} holds {modules_in_it} modules, more than {MOST}")
    count = len(of_files) + len(of_folders) + len(of_first) + len(of_crowds)
    print(f"{len(known)} modules, {count} faults")
    return 1 if count and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
