"""Libraries are built, and what a compiler made is not believed before it was looked at."""

from __future__ import annotations

import ctypes
import time
from pathlib import Path

import pytest
import torch

from inductor_codegen.native_errors import CompilationError
from inductor_codegen.toolchain import compiler_process, shared_libraries
from inductor_codegen.toolchain.cpp_compiler import (
    ENTRY_FLAGS,
    KERNEL_FLAGS,
    Compiler,
    Unit,
    find_compiler,
)
from inductor_codegen.toolchain.shared_libraries import build_library, seconds_for
from inductor_codegen.trusted import open_folder

ADD = 'extern "C" __attribute__((visibility("default"))) int add(int a, int b) { return a + b; }\n'
UNIT = Unit("one", ADD, KERNEL_FLAGS)


@pytest.fixture(autouse=True)
def _no_compiler_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_process, "_HUNG", {})


def fake(folder: Path, script: str) -> Compiler:
    """A compiler that does what the real one does, and then runs ``script`` on its result, $out."""
    real = find_compiler()
    file = folder / "fake-c++"
    text = 'out=; last=; for word in "$@"; do [ "$last" = -o ] && out=$word; last=$word; done'
    file.write_text(
        f'#!/bin/sh\n{text}\necho run >> {folder}/log\n{real.command[0]} "$@" || exit 1\n{script}\n'
    )
    file.chmod(0o755)
    return Compiler((str(file),), real.version, real.target)


def runs(folder: Path) -> int:
    return (folder / "log").read_text().count("run")


def test_builds_one_unit_and_several(tmp_path: Path) -> None:
    compiler = find_compiler()
    folder = open_folder(tmp_path)
    content = build_library(compiler, [Unit("one", ADD, KERNEL_FLAGS)], folder, "one.so", ["add"])
    assert content == (tmp_path / "one.so").read_bytes()
    library = ctypes.CDLL(str(tmp_path / "one.so"))
    assert library.add(2, 3) == 5
    caller = 'extern "C" int add(int, int);\n' + ADD.replace("add", "twice").replace("a + b", "2 * add(a, b)")
    units = [Unit("a", ADD, KERNEL_FLAGS), Unit("b", caller, ENTRY_FLAGS)]
    build_library(compiler, units, folder, "two.so", ["add", "twice"])
    assert ctypes.CDLL(str(tmp_path / "two.so")).twice(2, 3) == 10


def test_rejected_text_is_reported_with_its_log(tmp_path: Path) -> None:
    with pytest.raises(CompilationError) as caught:
        build_library(
            find_compiler(),
            [Unit("bad", "int f() { return undeclared; }", ENTRY_FLAGS)],
            open_folder(tmp_path),
        )
    assert caught.value.code == "IND112"
    assert "undeclared" in caught.value.what
    log = Path(caught.value.action.rpartition(" ")[2])
    assert "undeclared" in log.read_text()
    assert (log.parent / "bad.cpp").read_text() == "int f() { return undeclared; }"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (': > "$out"', "empty"),
        ('rm "$out"', "no file"),
        ('echo hello > "$out"', "not a library"),
        ('size=$(wc -c < "$out"); truncate -s $((size / 2)) "$out"', "beyond the file|cut off"),
        ('size=$(wc -c < "$out"); truncate -s $((size - 64)) "$out"', "beyond the file|cut off"),
        ('truncate -s 40 "$out"', "cut off"),
        ('printf "\\001" | dd of="$out" bs=1 seek=4 conv=notrunc 2>/dev/null', "another machine"),
        ('printf "\\001" | dd of="$out" bs=1 seek=16 conv=notrunc 2>/dev/null', "another machine"),
        (
            'strip "$out"; objcopy --version > /dev/null; cp /proc/self/exe "$out"',
            "another machine|add is missing",
        ),
    ],
)
def test_what_is_no_whole_library_is_made_again_and_then_refused(
    tmp_path: Path, script: str, said: str
) -> None:
    with pytest.raises(CompilationError, match=said) as caught:
        build_library(fake(tmp_path, script), [UNIT], open_folder(tmp_path), symbols=["add"])
    assert caught.value.code == "IND114"
    assert runs(tmp_path) == 2


def test_a_library_of_other_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CompilationError, match="subtract is missing"):
        build_library(find_compiler(), [UNIT], open_folder(tmp_path), symbols=["add", "subtract"])


def test_one_bad_result_is_forgiven(tmp_path: Path) -> None:
    script = f'[ -e {tmp_path}/second ] || {{ touch {tmp_path}/second; : > "$out"; }}'
    assert build_library(fake(tmp_path, script), [UNIT], open_folder(tmp_path), symbols=["add"])
    assert runs(tmp_path) == 2


def test_a_compiler_that_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_libraries, "_BASE_SECONDS", 0.5)
    compiler = fake(tmp_path, f"sh -c 'sleep 3; touch {tmp_path}/survived'")
    began = time.monotonic()
    with pytest.raises(CompilationError, match="fake-c\\+\\+ did not end within") as caught:
        build_library(compiler, [UNIT], open_folder(tmp_path))
    assert caught.value.code == "IND113"
    assert time.monotonic() - began < 2.5
    with pytest.raises(CompilationError, match="did not end within"):
        build_library(compiler, [UNIT], open_folder(tmp_path))
    assert runs(tmp_path) == 1
    time.sleep(3)
    assert not (tmp_path / "survived").exists()


def test_more_work_has_more_time() -> None:
    assert seconds_for(0) < seconds_for(100_000) < seconds_for(1_000_000)


def test_a_compiler_without_room_says_so_as_the_system_does(tmp_path: Path) -> None:
    compiler = fake(tmp_path, 'echo "fatal error: error writing to x.s: No space left on device" >&2; exit 1')
    with pytest.raises(OSError, match="No space left on device"):
        build_library(compiler, [UNIT], open_folder(tmp_path))


def test_a_compiler_that_is_killed_is_no_defect_of_the_text(tmp_path: Path) -> None:
    with pytest.raises(CompilationError, match="was ended") as caught:
        build_library(fake(tmp_path, "kill -9 $$"), [UNIT], open_folder(tmp_path))
    assert caught.value.code == "IND113"


def test_loading_a_library_leaves_denormals_alone(tmp_path: Path) -> None:
    tiny = torch.tensor([1e-310], dtype=torch.float64)
    assert (tiny * 0.5).item() != 0
    build_library(find_compiler(), [Unit("one", ADD, KERNEL_FLAGS)], open_folder(tmp_path))
    ctypes.CDLL(str(tmp_path / "graph.so"))
    assert (tiny * 0.5).item() != 0
