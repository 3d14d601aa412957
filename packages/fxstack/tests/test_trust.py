"""Compiling with a cache folder, or a temporary folder, that others can change: nothing there is opened or made.

A process compiles, trains and runs a program while ``inotify`` watches the folder (every process's opens are seen, the
compiler's too) and an audit hook watches what Python opens by name.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from python_processes import run as run_python

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="watches files by inotify")

WATCHING = """
import ctypes, os, struct, sys

library = ctypes.CDLL(None, use_errno=True)
watch = library.inotify_init1(os.O_NONBLOCK)
watched = sys.argv[1]
EVENTS, DIRECTORY = 0xFFF, 0x40000000
for folder, _, _ in os.walk(watched):
    assert library.inotify_add_watch(watch, folder.encode(), EVENTS) >= 0

def seen():
    found = set()
    while True:
        try:
            data = os.read(watch, 1 << 16)
        except BlockingIOError:
            return sorted(found)
        at = 0
        while at < len(data):
            _, mask, _, length = struct.unpack_from("iIII", data, at)
            name = data[at + 16 : at + 16 + length].rstrip(b"\\0").decode()
            at += 16 + length
            if not mask & DIRECTORY:
                found.add((name, hex(mask)))

opened = []
def audit(event, arguments):
    if event in ("open", "os.rename", "os.mkdir", "os.remove", "shutil.rmtree"):
        opened.extend(str(a) for a in arguments[:2] if isinstance(a, (str, bytes)) and watched in os.fsdecode(a))
sys.addaudithook(audit)

import torch, fxstack
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh())
compiled = fxstack.compile(model, backend="inductor")
x = torch.randn(5, 4)
torch.testing.assert_close(compiled(x), model(x))
compiled(x).sum().backward()
if os.environ.get("EXPECT_USE"):
    assert seen(), "the watch sees nothing"
else:
    assert not seen() and not opened, (seen(), opened)
print("done")
"""


def run(watched: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    done = run_python("-c", WATCHING, watched, env={**os.environ, "OMP_NUM_THREADS": "1", **environment})
    assert done.stdout.endswith("done\n"), done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    run(folder, FXSTACK_CACHE_DIR=str(folder), EXPECT_USE="1")
    assert any(folder.rglob("graph.so"))
    return folder


@pytest.fixture
def filled(made: Path, tmp_path: Path) -> Path:
    """A cache in which the program is."""
    return Path(shutil.copytree(made, tmp_path / "kept"))


@pytest.mark.parametrize("mode", [0o770, 0o1777])
def test_a_cache_that_others_may_write_is_not_opened(filled: Path, mode: int) -> None:
    filled.chmod(mode)
    done = run(filled, FXSTACK_CACHE_DIR=str(filled))
    assert "may be changed by another user" in done.stderr or "may write to it" in done.stderr


def test_a_cache_below_a_folder_that_others_may_write_is_not_opened(filled: Path) -> None:
    filled.parent.chmod(0o777)
    done = run(filled, FXSTACK_CACHE_DIR=str(filled))
    filled.parent.chmod(0o700)
    assert "may be changed by another user" in done.stderr


def test_a_temporary_folder_that_others_may_write_is_not_opened(tmp_path: Path) -> None:
    open_to_all = tmp_path / "tmp"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    run(open_to_all, TMPDIR=str(open_to_all), FXSTACK_CACHE_DIR=str(open_to_all / "cache"))


def test_what_is_in_a_cache_of_ones_own_is_used(filled: Path) -> None:
    run(filled, FXSTACK_CACHE_DIR=str(filled), EXPECT_USE="1")


@pytest.mark.parametrize(
    ("script", "warning"),
    [
        ("exit 1", "IND113"),
        ('[ "$1" = --version ] && { echo fake; exit 0; }; exit 0', "IND114"),
    ],
)
def test_a_compiler_that_does_not_work_leaves_the_program_to_eager(
    tmp_path: Path, script: str, warning: str
) -> None:
    fake = tmp_path / "fake"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    fake.chmod(0o755)
    (tmp_path / "watched").mkdir()
    done = run(tmp_path / "watched", FXSTACK_CACHE_DIR=str(tmp_path / "kept"), CXX=str(fake))
    assert warning in done.stderr
    assert str(fake) in done.stderr


@pytest.mark.parametrize(
    "place",
    ["/proc", *(pytest.param(place, marks=pytest.mark.nightly) for place in ("absent/folder", "file"))],
)
def test_a_temporary_folder_that_cannot_be_written_is_no_obstacle(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "watched").mkdir()
    named = str(tmp_path / place)  # "/proc" stays what it is
    run(tmp_path / "watched", TMPDIR=named, FXSTACK_CACHE_DIR="/proc/cache")
