"""The compiler: found, remembered, run, and its failures reported."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from inductor_codegen.native_errors import CompilationError, MissingCompilerError
from inductor_codegen.toolchain import cpp_compiler
from inductor_codegen.toolchain.cpp_compiler import KERNEL_FLAGS, find_compiler


def test_a_missing_compiler_says_how_to_install_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    for command in (None, "no-such-compiler -m64"):
        with pytest.raises(MissingCompilerError) as caught:
            find_compiler(command)
        assert caught.value.code == "IND111"
        assert "apt install g++" in caught.value.action
        assert "eager" in caught.value.action
        assert "is on the path" not in caught.value.what or command is None


def test_a_compiler_that_cannot_run_is_reported(tmp_path: Path) -> None:
    fake = tmp_path / "c++"
    fake.write_text("#!/bin/sh\nexit 3\n")
    fake.chmod(0o755)
    with pytest.raises(CompilationError, match="IND113"):
        find_compiler(str(fake))


def test_the_compiler_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = find_compiler(memo=tmp_path)
    monkeypatch.setattr(cpp_compiler, "_ask", lambda words: pytest.fail("asked again"))
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


@pytest.mark.parametrize("text", ["", "{", "[]", "[1]", '{"a": 1}', pytest.param("[" * 200_000, id="deep")])
def test_a_damaged_memo_is_ignored(tmp_path: Path, text: str) -> None:
    first = find_compiler(memo=tmp_path)
    (note,) = tmp_path.glob(".compiler-*.json")
    note.write_text(text)
    assert find_compiler(memo=tmp_path) == first


def test_the_identity_names_flags_and_processor() -> None:
    compiler = find_compiler()
    assert compiler.version in compiler.identity
    assert cpp_compiler.processor() in compiler.identity
    assert all(flag in compiler.identity for flag in KERNEL_FLAGS)


def test_a_memo_that_others_may_write_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = find_compiler(memo=tmp_path)
    (note,) = tmp_path.glob(".compiler-*.json")
    for mode, folder_mode in ((0o666, 0o700), (0o600, 0o777)):
        note.write_text(json.dumps(["forged", "-march=native"]))
        note.chmod(mode)
        tmp_path.chmod(folder_mode)
        assert find_compiler(memo=tmp_path) == first
    assert json.loads(note.read_text())[0] == "forged"


def test_a_memo_names_no_flags_of_its_own(tmp_path: Path) -> None:
    first = find_compiler(memo=tmp_path)
    (note,) = tmp_path.glob(".compiler-*.json")
    note.write_text(json.dumps([first.version, "-fplugin=/tmp/evil.so"]))
    assert find_compiler(memo=tmp_path) == first


def test_a_memo_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    first = find_compiler(memo=tmp_path)
    (note,) = tmp_path.glob(".compiler-*.json")
    other = tmp_path / "other.json"
    other.write_text(json.dumps(["forged"]))
    note.unlink()
    note.symlink_to(other)
    assert find_compiler(memo=tmp_path) == first
    assert json.loads(other.read_text()) == ["forged"]
    assert not note.is_symlink()
