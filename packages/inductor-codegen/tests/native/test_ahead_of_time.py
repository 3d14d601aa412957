"""Native objects for levels of processors: whole libraries that are compiled and not loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fx_interface.dialects.prims import PRIMS
from inductor_codegen import CodegenOptions
from inductor_codegen.native import ahead_of_time
from inductor_codegen.native.ahead_of_time import compile_for_levels
from inductor_codegen.runtime import load
from inductor_codegen.testing import ExampleGraph
from inductor_codegen.toolchain.cpp_compiler import find_compiler
from inductor_codegen.toolchain.library_file import faults

pytestmark = pytest.mark.skipif(
    not any("march" in flag for flag in find_compiler().target), reason="the levels are those of x86-64"
)
LEVELS = ("x86-64-v2", "x86-64-v4")


def test_each_level_has_a_library(tmp_path: Path) -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(4, 8))
    built = graph.build(graph.call(PRIMS["tanh"], x))
    made = compile_for_levels(built, LEVELS, CodegenOptions(tmp_path))
    assert tuple(made.libraries) == LEVELS
    assert made.libraries["x86-64-v2"] != made.libraries["x86-64-v4"]
    for library in made.libraries.values():
        assert faults(library, ("fx_abi", "fx_entry", "fx_bind")) == []
    assert (made.record.input_kinds, made.record.output_kinds) == ("t", "t")
    path = tmp_path / "low.so"
    path.write_bytes(made.libraries["x86-64-v2"])
    given = torch.randn(4, 8)
    torch.testing.assert_close(load(made.record, path)(given)[0], given.tanh())


def test_it_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def built() -> object:
        graph = ExampleGraph()
        return graph.build(graph.call(PRIMS["exp"], graph.input(torch.randn(4, 8))))

    first = compile_for_levels(built(), LEVELS[:1], CodegenOptions(tmp_path))  # type: ignore[arg-type]
    monkeypatch.setattr(ahead_of_time, "build_entry", lambda *args: pytest.fail("compiled again"))
    again = compile_for_levels(built(), LEVELS[:1], CodegenOptions(tmp_path))  # type: ignore[arg-type]
    assert again.libraries == first.libraries


def test_flags_of_this_processor_are_left_out() -> None:
    low, high = (find_compiler().for_level(level).target for level in LEVELS)
    assert "-march=native" not in low + high
    assert low[0] == "-march=x86-64-v2"
    assert not any("512" in flag for flag in low)
    assert any("512" in flag for flag in high)
