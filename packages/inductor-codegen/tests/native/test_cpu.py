"""Building, storing and loading compiled graphs: warm starts, damage, versions."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from fx_interface.dialects.prims import PRIMS
from fx_interface.signature import SIGNATURE_KEY, InputDecl, InputKind, OutputDecl, OutputKind, Signature
from inductor_codegen import CodegenOptions, compile_graph, load_graph
from inductor_codegen.cache import ArtifactStore
from inductor_codegen.codegen.wrapper import write_entry
from inductor_codegen.native import cpu
from inductor_codegen.native.cpu import graph_key
from inductor_codegen.pipeline import kernel_sources, plan
from inductor_codegen.testing import ExampleGraph
from inductor_codegen.toolchain import cpp_compiler
from inductor_codegen.toolchain.cpp_compiler import Compiler, find_compiler


def example() -> GraphModule:
    graph = ExampleGraph()
    x = graph.input(torch.randn(4, 8))
    w = graph.input(torch.randn(8, 8), "w")
    product = graph.call(torch.ops.aten.mm.default, x, w)
    best = graph.call(torch.ops.aten.mul.Scalar, graph.call(torch.ops.aten.argmax.default, product, 1), 3)
    return graph.build(graph.call(PRIMS["tanh"], product), best)


def check(graph: object) -> None:
    x, w = torch.randn(4, 8), torch.randn(8, 8)
    result, best = graph(x, w)  # type: ignore[operator]
    torch.testing.assert_close(result, (x @ w).tanh())
    assert torch.equal(best, (x @ w).argmax(1) * 3)


@pytest.fixture
def no_compiler_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "build_library", lambda *args: pytest.fail("compiled again"))
    monkeypatch.setattr(cpp_compiler, "_ask", lambda words: pytest.fail("asked the compiler again"))


def test_compiles_and_loads_by_key_alone(tmp_path: Path) -> None:
    graph = compile_graph(example(), CodegenOptions(tmp_path))
    check(graph)
    loaded = load_graph(graph.artifact_key, ArtifactStore(tmp_path))
    check(loaded)
    assert loaded is not None
    assert loaded.artifact_key == graph.artifact_key
    assert load_graph("ab", ArtifactStore(tmp_path)) is None


def test_the_same_text_is_compiled_once(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    first = compile_graph(example(), CodegenOptions(tmp_path))
    request.getfixturevalue("no_compiler_runs")
    second = compile_graph(example(), CodegenOptions(tmp_path))
    assert second.artifact_key == first.artifact_key
    check(second)


_SECOND = """
import os, sys
from pathlib import Path
os.environ["PATH"] = ""
import torch
from inductor_codegen import load_graph
from inductor_codegen.cache import ArtifactStore
graph = load_graph(sys.argv[2], ArtifactStore(Path(sys.argv[1])))
x, w = torch.randn(4, 8), torch.randn(8, 8)
torch.testing.assert_close(graph(x, w)[0], (x @ w).tanh())
print("ok")
"""


def test_a_second_process_needs_no_compiler(tmp_path: Path) -> None:
    graph = compile_graph(example(), CodegenOptions(tmp_path))
    command = [sys.executable, "-c", _SECOND, str(tmp_path), graph.artifact_key]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "ok\n", done.stderr


def test_without_a_cache_nothing_is_kept(tmp_path: Path) -> None:
    check(compile_graph(example(), CodegenOptions(tmp_path / "unused", cache=False)))
    assert not (tmp_path / "unused").exists()


@pytest.mark.parametrize("file", ["graph.so", "entry.json"])
def test_a_damaged_artifact_is_compiled_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, file: str
) -> None:
    key = compile_graph(example(), CodegenOptions(tmp_path)).artifact_key
    damaged = tmp_path / key[:2] / key / file
    content = damaged.read_bytes()
    damaged.unlink()  # the library is loaded: never write into it
    damaged.write_bytes(content[: len(content) // 2])
    with caplog.at_level(logging.WARNING, "inductor_codegen"):
        assert load_graph(key, ArtifactStore(tmp_path)) is None
    assert "damaged" in caplog.text
    check(compile_graph(example(), CodegenOptions(tmp_path)))
    check(load_graph(key, ArtifactStore(tmp_path)))


def test_an_artifact_that_cannot_be_loaded_is_made_again(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    key = compile_graph(example(), store=store).artifact_key
    record = store.get(key)
    assert record is not None
    store.put(key, record.metadata, {"graph.so": b"no library"})
    assert load_graph(key, store) is None
    store.put(key, {"abi": -1}, {"graph.so": b"no library"})
    check(compile_graph(example(), store=store))


def test_the_key_depends_on_everything() -> None:
    program = plan(example())
    entry, kernels = write_entry(program), kernel_sources(program)
    compiler = find_compiler()
    key = graph_key(entry, kernels, compiler)
    assert key == graph_key(write_entry(plan(example())), kernels, compiler)
    other = Compiler(compiler.command, "another 1.0", compiler.target)
    keys = {key, graph_key(entry, kernels, other), graph_key(entry, (*kernels, ""), compiler)}
    keys.add(graph_key(entry, tuple(text + " " for text in kernels), compiler))
    assert len(keys) == 4


def test_an_own_compiler_is_used(tmp_path: Path) -> None:
    fake = tmp_path / "my-c++"
    log = tmp_path / "log"
    fake.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {find_compiler().command[0]} "$@"\n')
    fake.chmod(0o755)
    check(compile_graph(example(), CodegenOptions(tmp_path / "cache", compiler=str(fake))))
    assert "-shared" in log.read_text()


def test_compiling_from_several_processes_at_once(tmp_path: Path) -> None:
    source = (
        "import sys; from pathlib import Path; import torch\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import test_cpu as t\n"
        "t.check(t.compile_graph(t.example(), t.CodegenOptions(Path(sys.argv[1]))))\n"
    )
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    command = [sys.executable, "-c", source, str(tmp_path / "cache")]
    running = [subprocess.Popen(command, env=environment) for _ in range(2)]
    assert [process.wait(120) for process in running] == [0, 0]


def _backward_like(kinds: list[InputKind]) -> Any:
    """tanh(x @ y) of 64 x 64 matrices that are inputs of the given kinds."""
    graph = ExampleGraph()
    x, y = (graph.input(torch.randn(64, 64), name) for name in ("x", "y"))
    module = graph.build(graph.call(PRIMS["tanh"], graph.call(torch.ops.aten.mm.default, x, y)))
    names = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    inputs = tuple(InputDecl(name, kind, None) for name, kind in zip(names, kinds, strict=True))
    module.meta[SIGNATURE_KEY] = Signature(inputs, (OutputDecl(OutputKind.USER),))
    return compile_graph(module)


@pytest.mark.parametrize("kind", [InputKind.SAVED, InputKind.USER])
def test_inputs_left_to_a_call_are_freed(kind: InputKind) -> None:
    graph = _backward_like([kind, InputKind.USER])
    x, y = torch.randn(64, 64), torch.randn(64, 64)
    expected = torch.tanh(x @ y)
    held, gone = weakref.ref(x), [x, y]
    kept = x.clone()
    del x
    (result,) = graph.call_owning(gone, (0,))
    assert gone[0] is None
    assert gone[1] is y
    assert held() is None
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(graph(kept, y)[0], expected)
    torch.testing.assert_close(graph.call_owning([kept, y], ())[0], expected)


def test_a_tensor_that_somebody_holds_outlives_a_call_that_owns_it() -> None:
    graph = _backward_like([InputKind.SAVED, InputKind.SAVED])
    x, y = torch.randn(64, 64), torch.randn(64, 64)
    before = x.clone(), y.clone()
    (result,) = graph.call_owning([x, y], (0, 1))
    assert x.equal(before[0])
    assert y.equal(before[1])
    torch.testing.assert_close(result, torch.tanh(x @ y))


def test_wrong_arguments_of_an_owning_call() -> None:
    graph = _backward_like([InputKind.SAVED, InputKind.USER])
    x = torch.randn(64, 64)
    with pytest.raises(TypeError, match="2 inputs was called with 1"):
        graph.call_owning([x], (0,))
    with pytest.raises(TypeError):
        graph.call_owning([x, x], ("first",))
    with pytest.raises(TypeError, match=r"expected a torch\.Tensor"):
        graph.call_owning([x, 1.0], (0,))


def test_debuggers_see_names_and_lines_of_kernels(tmp_path: Path) -> None:
    """And the text that the lines are of lies where they say; results are those of the same instructions."""
    graph = compile_graph(example(), CodegenOptions(tmp_path, debug=True))
    check(graph)
    folder = ArtifactStore(tmp_path).path(graph.artifact_key)
    library = str(folder / "graph.so")
    symbols = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout
    found = [line.split() for line in symbols.splitlines() if " t kernel_" in line]
    places = {}
    for address, _, name in found:
        asked = ["addr2line", "-e", library, address]
        places[name] = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    assert any(name.startswith("kernel_tanh__") for name in places), places
    for name, place in places.items():
        file, _, number = place.partition(":")
        before = Path(file).read_text().splitlines()[: int(number.split()[0])]
        head = next(line for line in reversed(before) if line.startswith('extern "C"'))
        assert f" {name}(" in head
    plain = compile_graph(example(), CodegenOptions(tmp_path))
    assert plain.artifact_key != graph.artifact_key
    x, w = torch.randn(4, 8), torch.randn(8, 8)
    assert torch.equal(plain(x, w)[0], graph(x, w)[0])
