"""The examples run as they stand: each compares what it computes with eager itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
QUICK = ("count_operators", "custom_backend", "own_tables", "serve_artifact", "static_cache")
ALL = tuple(sorted(path.stem for path in EXAMPLES.glob("*.py")))
NOTEBOOKS = tuple(sorted(EXAMPLES.glob("*.ipynb")))
NEEDS = {"resnet_cpp": ("cmake", "c++")}
"""Programs that an example starts."""


@pytest.mark.parametrize("name", ALL if os.environ.get("ALL_EXAMPLES") else QUICK)
def test_an_example_runs(name: str) -> None:
    """All by ``nox -s examples``."""
    for program in NEEDS.get(name, ()):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert run.stdout


@pytest.mark.skipif(not os.environ.get("ALL_EXAMPLES"), reason="starts a Jupyter kernel: nox -s examples")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    """Every cell, in a kernel of this interpreter."""
    import nbformat
    from jupyter_client.kernelspec import KernelSpecManager
    from nbclient import NotebookClient

    kernel = tmp_path / "here"
    kernel.mkdir()
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(
        json.dumps({"argv": argv, "display_name": "here", "language": "python"})
    )
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=300, kernel_name="here", resources={"metadata": {"path": tmp_path}}
    )
    client.km = client.create_kernel_manager()
    client.km.kernel_spec_manager = KernelSpecManager(kernel_dirs=[str(tmp_path)])
    client.execute()
    assert any(cell.get("outputs") for cell in notebook.cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs(path: Path) -> None:
    code = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert code
    assert [cell["id"] for cell in code if cell["outputs"] or cell["execution_count"] is not None] == []


def test_the_page_names_each() -> None:
    page = (EXAMPLES / "README.md").read_text()
    files = [f"{name}.py" for name in ALL] + [path.name for path in NOTEBOOKS]
    assert [name for name in files if f"({name})" not in page] == []
