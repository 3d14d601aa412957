"""The compiler: found, remembered, run, and its failures reported."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path

import pytest
import torch

from inductor_codegen import toolchain
from inductor_codegen.native_errors import CompilationError, MissingCompilerError
from inductor_codegen.toolchain import ENTRY_FLAGS, KERNEL_FLAGS, Unit, build_library, find_compiler

ADD = 'extern "C" __attribute__((visibility("default"))) int add(int a, int b) { return a + b; }\n'


def test_builds_one_unit_and_several(tmp_path: Path) -> None:
    compiler = find_compiler()
    library = ctypes.CDLL(str(build_library(compiler, [Unit("one", ADD, KERNEL_FLAGS)], tmp_path, "one.so")))
    assert library.add(2, 3) == 5
    caller = 'extern "C" int add(int, int);\n' + ADD.replace("add", "twice").replace("a + b", "2 * add(a, b)")
    units = [Unit("a", ADD, KERNEL_FLAGS), Unit("b", caller, ENTRY_FLAGS)]
    assert ctypes.CDLL(str(build_library(compiler, units, tmp_path, "two.so"))).twice(2, 3) == 10


def test_a_missing_compiler_says_how_to_install_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    for command in (None, "no-such-compiler -m64"):
        with pytest.raises(MissingCompilerError) as caught:
            find_compiler(command)
        assert caught.value.code == "IND111"
        assert "apt install g++" in caught.value.action
        assert "eager" in caught.value.action


def test_rejected_text_is_reported_with_its_log(tmp_path: Path) -> None:
    with pytest.raises(CompilationError) as caught:
        build_library(find_compiler(), [Unit("bad", "int f() { return undeclared; }", ENTRY_FLAGS)], tmp_path)
    assert caught.value.code == "IND112"
    assert "undeclared" in caught.value.what
    log = Path(caught.value.action.rpartition(" ")[2])
    assert "undeclared" in log.read_text()
    assert (log.parent / "bad.cpp").read_text() == "int f() { return undeclared; }"


def test_a_compiler_that_cannot_run_is_reported(tmp_path: Path) -> None:
    fake = tmp_path / "c++"
    fake.write_text("#!/bin/sh\nexit 3\n")
    fake.chmod(0o755)
    with pytest.raises(CompilationError, match="IND113"):
        find_compiler(str(fake))


def test_the_compiler_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = find_compiler(memo=tmp_path)
    monkeypatch.setattr(toolchain, "_ask", lambda words: pytest.fail("asked again"))
    assert find_compiler(memo=tmp_path) == first
    (note,) = tmp_path.glob(".compiler-*.json")
    assert json.loads(note.read_text())[0] == first.version


def test_another_compiler_at_the_same_path_is_asked_again(tmp_path: Path) -> None:
    real = find_compiler().command[0]
    fake = tmp_path / "c++"
    for answer in ("one", "two"):
        fake.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo {answer} && exit\nexec {real} "$@"\n')
        fake.chmod(0o755)
        os.utime(fake, (1000 + len(answer), hash(answer) % 1000))
        assert find_compiler(str(fake), memo=tmp_path / "memo").version == answer


@pytest.mark.parametrize("text", ["", "{", "[]", "[1]", '{"a": 1}'])
def test_a_damaged_memo_is_ignored(tmp_path: Path, text: str) -> None:
    first = find_compiler(memo=tmp_path)
    (note,) = tmp_path.glob(".compiler-*.json")
    note.write_text(text)
    assert find_compiler(memo=tmp_path) == first


def test_the_identity_names_flags_and_processor() -> None:
    compiler = find_compiler()
    assert compiler.version in compiler.identity
    assert toolchain.processor() in compiler.identity
    assert all(flag in compiler.identity for flag in KERNEL_FLAGS)


def test_loading_a_library_leaves_denormals_alone(tmp_path: Path) -> None:
    tiny = torch.tensor([1e-310], dtype=torch.float64)
    assert (tiny * 0.5).item() != 0
    ctypes.CDLL(str(build_library(find_compiler(), [Unit("one", ADD, KERNEL_FLAGS)], tmp_path)))
    assert (tiny * 0.5).item() != 0
