"""Generates one reference page a package from its facade: each public name with its signature and docstring."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from workspace import BY_NAME, PACKAGES, Package


def module_path(name: str) -> Path | None:
    """The file of a module of one of the packages, or None for a module of someone else."""
    package = BY_NAME.get(name.partition(".")[0].replace("_", "-"))
    if package is None:
        return None
    base = package.source.parent.joinpath(*name.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.exists():
            return path
    return None


def facade(package: Package) -> list[tuple[str, str]]:
    """Public names of the package in order, each with the module that defines it."""
    path = package.source / "__init__.py"
    if not path.exists():
        return []
    tree = ast.parse(path.read_text())
    origins = {
        alias.asname or alias.name: node.module or package.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and not node.level
        for alias in node.names
    }
    public = [name for name in exported(tree) if not name.startswith("__")]
    return [(name, origins.get(name, package.module)) for name in public]


def exported(tree: ast.Module) -> list[str]:
    """The names in ``__all__``."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "__all__" for t in node.targets):
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def describe(name: str, module: str) -> Iterator[str]:
    """The Markdown lines of one public name."""
    yield f"### `{name}`"
    yield ""
    path = module_path(module)
    found = None if path is None else _definition(ast.parse(path.read_text()), name)
    if found is None:
        yield f"From `{module}`."
    else:
        signature, text = found
        if signature:
            yield from ("```python", signature, "```", "")
        yield text or "(no description)"
    yield ""


def _definition(tree: ast.Module, name: str) -> tuple[str, str] | None:
    for position, node in enumerate(tree.body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            returns = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
            return f"def {name}({ast.unparse(node.args)}){returns}", ast.get_docstring(node) or ""
        if isinstance(node, ast.ClassDef) and node.name == name:
            return f"class {name}({', '.join(map(ast.unparse, node.bases))})", ast.get_docstring(node) or ""
        if _assigns(node, name):
            after = tree.body[position + 1] if position + 1 < len(tree.body) else None
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                return "", str(after.value.value)
            return "", ""
    return None


def _assigns(node: ast.stmt, name: str) -> bool:
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    return any(isinstance(target, ast.Name) and target.id == name for target in targets)


def page(package: Package) -> str:
    """The reference page of one package."""
    lines = [f"# {package.name} {package.version}", "", package.metadata["project"]["description"], ""]
    for name, module in facade(package):
        lines.extend(describe(name, module))
    return "\n".join(lines)


def main(argv: Sequence[str]) -> int:
    """Write the pages and an index into the folder that is named."""
    folder = Path(argv[0])
    folder.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        (folder / f"{package.name}.md").write_text(page(package))
    index = ["# Reference", "", *(f"- [{package.name}]({package.name}.md)" for package in PACKAGES), ""]
    (folder / "index.md").write_text("\n".join(index))
    print(f"{len(PACKAGES)} pages in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
