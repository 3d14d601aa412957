"""What ``import fxstack`` and a first call out of the cache load: what they need, and nothing that compiles."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

COMPILES = (
    *("aot_autograd.joint", "aot_autograd.functionalization", "aot_autograd.recording", "aot_autograd.views"),
    *(
        "aot_autograd.pipeline",
        "aot_autograd.partition",
        "aot_autograd.functions",
        "aot_autograd.control_flow.walk",
    ),
    *(
        "inductor_codegen.ir",
        "inductor_codegen.lower",
        "inductor_codegen.schedule",
        "inductor_codegen.codegen",
    ),
    *("inductor_codegen.compile", "inductor_codegen.pipeline", "inductor_codegen.native.cpu"),
    *("primtorch_decomps.to_prims.decompose", "primtorch_decomps.exact"),
    *("fx_interface.verifier", "fx_interface.dialect_rules"),
)
"""Modules that trace, decompose, lower, schedule and write code."""
RARE = (
    *(
        "fxstack.verifying",
        "fxstack.verification",
        "fxstack.checking",
        "fxstack.diagnosis",
        "fxstack.observing",
        "fxstack.report",
        "fxstack.counter_random",
    ),
    *("fxstack.adapters", "fxstack.cli", "networkx", "triton", "rich", "click", "platformdirs"),
)
"""Modules of what few programs ask for."""
FAMILIES = ("primtorch_decomps.decomps.", "primtorch_decomps.rules.")
"""Formulas and rules of operators: a program loads those of its own operators."""

_STACK = (
    *("fx_interface", "fx_guards", "dynamo_capture", "aot_autograd"),
    *("primtorch_decomps", "inductor_codegen", "fxstack"),
)
_MOST = 684
"""Modules of the stack; at the time of writing there are 682, most of them capture's, whose tables are filled by being
loaded."""

_IMPORT = """
import dataclasses, gc, json, sys
import torch
before = set(sys.modules)
by_library = []
def counted(cls=None, /, _make=dataclasses.dataclass, **options):
    if cls is None:
        return lambda cls: counted(cls, **options)
    by_library.append(f"{cls.__module__}.{cls.__qualname__}")
    return _make(cls, **options)
dataclasses.dataclass = counted
collections = gc.get_stats()[2]["collections"]
import fxstack
print(json.dumps({
    "loaded": sorted(set(sys.modules) - before),
    "collections": gc.get_stats()[2]["collections"] - collections,
    "enabled": gc.isenabled(),
    "by library": by_library,
}))
"""

_FIRST_CALL = """
import json, sys
import torch
import fxstack
from fx_interface import plugins
asked, written = [], []
reads = plugins.entry_points
def told(**chosen):
    asked.append(chosen)
    return reads(**chosen)
plugins.entry_points = told
sys.addaudithook(lambda event, given: event == "compile" and written.append(str(given[1])))
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
compiled = fxstack.compile(model, options={"cache_dir": sys.argv[1]})
compiled(torch.randn(3, 4)).sum().backward()
modules, texts = sorted(sys.modules), [name for name in written if name.startswith("<eval_with_key>")]
torch.fx.symbolic_trace(torch.nn.ReLU())
control = [name for name in written if name.startswith("<eval_with_key>")]
print(json.dumps({"modules": modules, "entry points": asked, "texts": texts, "control": control}))
"""

_REST = """
import importlib, json, pkgutil, sys
import torch
from torch.overrides import TorchFunctionMode
import fxstack

class Told(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is not torch.device:  # a value
            called.append(f"{loading}: {func}")
        return func(*args, **(kwargs or {}))

called, failed = [], []
names = [module.name for package in json.loads(sys.argv[1]) for module in
         pkgutil.walk_packages(importlib.import_module(package).__path__, package + ".")]
with Told():
    for loading in names:
        if loading in sys.modules or loading.startswith(tuple(json.loads(sys.argv[2]))):
            continue
        try:
            importlib.import_module(loading)
        except ImportError as error:
            failed.append(f"{loading}: {error}")
print(json.dumps({"called": called, "count": len(names), "failed": failed}))
"""


def _run(program: str, *arguments: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


_WITHOUT_TORCH = "dynamo_capture.bytecode.", "dynamo_capture.interpreter.opcodes.not_handled"


@pytest.fixture(scope="module")
def imported() -> Mapping[str, Any]:
    found: Mapping[str, Any] = _run(_IMPORT)
    return found


def test_import_loads_nothing_that_compiles(imported: Mapping[str, Any]) -> None:
    assert [name for name in imported["loaded"] if name.startswith((*COMPILES, *RARE, *FAMILIES))] == []


def test_import_loads_few_modules(imported: Mapping[str, Any]) -> None:
    assert len([name for name in imported["loaded"] if name.startswith(_STACK)]) <= _MOST


def test_import_searches_for_no_cycles(imported: Mapping[str, Any]) -> None:
    """A search of all that torch has made takes half as long as the import."""
    assert imported["collections"] == 0
    assert imported["enabled"]


def test_the_standard_library_makes_no_class_of_the_stack(imported: Mapping[str, Any]) -> None:
    """See ``fx_interface.python_runtime.quick_dataclasses``, which the layer without torch cannot import."""
    made = [name for name in imported["by library"] if name.startswith(_STACK)]
    assert [name for name in made if not name.startswith(_WITHOUT_TORCH)] == []
    assert len(made) <= 12


def test_a_first_call_out_of_the_cache_loads_nothing_that_compiles(tmp_path: Path) -> None:
    cold, warm = (_run(_FIRST_CALL, str(tmp_path))["modules"] for _ in range(2))
    assert set(COMPILES) - {
        "aot_autograd.functions",
        "aot_autograd.control_flow.walk",
        "primtorch_decomps.exact",
    } <= {
        *cold,
        *("fx_interface.verifier", "fx_interface.dialect_rules"),
    }, "these are no names of modules"
    assert [name for name in warm if name.startswith((*COMPILES, *RARE))] == []
    assert len([name for name in warm if name.startswith(FAMILIES)]) < 12


def test_a_first_call_reads_no_entry_points_and_writes_no_text_of_a_graph(
    tmp_path: Path,
) -> None:
    """The default backend is this distribution's own; the captured graph runs compiled."""
    for _ in range(2):
        found = _run(_FIRST_CALL, str(tmp_path))
        assert (found["texts"], found["entry points"]) == ([], [])
        assert len(found["control"]) == 1, "this is not how such texts are named"


def test_a_module_that_is_loaded_while_a_program_runs_calls_nothing_of_torch() -> None:
    """The program's modes are on then: what a module makes would be made under them, and once for all programs."""
    apart = ("fxstack.adapters", "fxstack.__main__", "fx_interface.conformance", "primtorch_decomps.testing")
    found = _run(_REST, json.dumps(_STACK), json.dumps([*apart, "inductor_codegen.testing"]))
    assert found["count"] > 700
    assert found["called"] == []
    assert [line for line in found["failed"] if "triton" not in line] == []
