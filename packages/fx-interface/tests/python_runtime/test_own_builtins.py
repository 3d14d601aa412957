"""The stack's own modules do not see what a program puts in place of builtins."""

from __future__ import annotations

import builtins
import importlib
import operator
import os
import py_compile
import sys
from collections.abc import Iterator
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

import pytest
import torch

import fx_interface
from fx_interface import graph
from fx_interface.python_runtime import own_builtins
from fx_interface.python_runtime.own_builtins import replaced
from fx_interface.symbols import symbol
from fx_interface.tensor_spec import SymSpec


def test_functions_and_methods_of_the_stack_have_builtins_of_their_own() -> None:
    assert graph.outputs.__builtins__ is own_builtins._BUILTINS_OF_STACK
    assert fx_interface.GraphBuilder.input.__builtins__ is own_builtins._BUILTINS_OF_STACK
    assert own_builtins.replaced.__builtins__ is vars(builtins)  # the one module that is there before


def test_a_replaced_builtin_is_named_and_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert replaced() is None
    with monkeypatch.context() as patched:
        patched.setattr(builtins, "len", lambda value: 3)
        found = replaced()
    assert found == "len"
    with monkeypatch.context() as patched:
        patched.delattr(builtins, "divmod")
        found = replaced()
    assert found == "divmod"
    with monkeypatch.context() as patched:
        patched.setattr(builtins, "print", lambda *values: None)
        patched.setattr(builtins, "one_more", 1, raising=False)
        found = replaced()
    assert found is None


def test_modules_of_functions_are_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    assert graph.operator is not operator
    built, first = torch.fx.Graph(), operator.add
    number = graph.set_spec(built.placeholder("s0"), SymSpec(symbol("s0")))
    monkeypatch.setattr(operator, "add", operator.sub)
    node = graph.materialize(built, symbol("s0") + 3, graph.symbol_nodes(built))
    assert isinstance(node, torch.fx.Node)
    assert node.target is first is not operator.add
    assert node.args == (number, 3)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder in which a package of the stack has modules of this test's."""
    monkeypatch.setattr(fx_interface, "__path__", [*fx_interface.__path__, str(tmp_path)])
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("fx_interface.loaded_by_test")]:
        del sys.modules[name]
    importlib.invalidate_caches()


def _loaded(package: Path, text: str, older: int = 0) -> Any:
    """The module, written anew with a time of its own, and loaded in place of what was loaded before."""
    source = package / "loaded_by_test.py"
    source.write_text(text)
    os.utime(source, (1_600_000_000 - older, 1_600_000_000 - older))
    sys.modules.pop("fx_interface.loaded_by_test", None)
    importlib.invalidate_caches()
    return importlib.import_module("fx_interface.loaded_by_test")


def test_a_module_is_loaded_from_its_bytecode_and_from_no_other(package: Path) -> None:
    first = _loaded(package, "value = 1\n")
    assert (first.value, first.__builtins__) == (1, own_builtins._BUILTINS_OF_STACK)
    bytecode = Path(first.__cached__)
    assert first.__cached__ == cache_from_source(first.__file__)
    kept = bytecode.read_bytes()
    assert _loaded(package, "value = 2\n").value == 1, (
        "a source of that time and size is taken to be the same"
    )
    assert _loaded(package, "value = 2\n", older=1).value == 2
    for broken in (b"", kept[:3], b"\0" * len(kept)):
        bytecode.write_bytes(broken)
        assert _loaded(package, "value = 3\n").value == 3
    py_compile.compile(
        first.__file__, cfile=str(bytecode), invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH
    )
    assert _loaded(package, "value = 4\n").value == 4, "bytecode by hash is compared by hash"


def test_bytecode_of_another_place_is_given_the_name_of_this_one(package: Path) -> None:
    first = _loaded(package, "def function():\n    pass\n")
    elsewhere = package / "elsewhere.py"
    elsewhere.write_text("def function():\n    pass\n")
    os.utime(elsewhere, (1_600_000_000, 1_600_000_000))
    py_compile.compile(str(elsewhere), cfile=first.__cached__)
    again = _loaded(package, "def function():\n    pass\n")
    assert again.function.__code__.co_filename == first.__file__


def test_packages_and_files_that_come_later_are_found(package: Path) -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("fx_interface.loaded_by_test_later")
    (package / "loaded_by_test_later").mkdir()
    (package / "loaded_by_test_later" / "__init__.py").write_text("from . import inside\n")
    (package / "loaded_by_test_later" / "inside.py").write_text("value = 5\n")
    importlib.invalidate_caches()
    made = importlib.import_module("fx_interface.loaded_by_test_later")
    assert made.inside.value == 5
    assert made.__path__ == [str(package / "loaded_by_test_later")]
    (package / "loaded_by_test_later" / "late.py").write_text("value = 6\n")
    importlib.invalidate_caches()
    assert importlib.import_module("fx_interface.loaded_by_test_later.late").value == 6


def test_bytecode_is_kept_where_python_is_told_to(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(package / "elsewhere"))
    made = _loaded(package, "value = 7\n")
    assert made.__cached__ == cache_from_source(made.__file__)
    assert made.__cached__.startswith(str(package / "elsewhere"))
    assert Path(made.__cached__).exists()
