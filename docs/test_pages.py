"""Runs the code blocks of every page, in order and in one namespace for each page.

========================  ==================================================================================
``python``                is executed; an exception fails the page
``text``                  holds what the block before it printed; ``...`` stands for anything
``sh`` before ``text``    is executed too
``sh`` elsewhere          is not executed (a session of nox takes minutes); what it names has to exist
========================  ==================================================================================

A block that is not executed has a comment before it that says why (``<!-- skip: next "why" -->``); their number is held
by ``test_few_blocks_are_skipped``. ``FX_UPDATE_GOLDEN=1`` writes what was printed into the pages. Printed values
are compared on the CPython and torch that the pages were written with, and elsewhere only computed.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pytest
import torch
from sybil import Document, Example, Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser, SkipParser

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    page
    for pattern in ("README.md", "examples/README.md", "docs/**/*.md", "packages/*/README.md")
    for page in ROOT.glob(pattern)
)
AS_WRITTEN = sys.version_info[:2] == (3, 11) and torch.__version__.startswith("2.13")
UPDATE = os.environ.get("FX_UPDATE_GOLDEN") == "1"
PRINTED = "__printed__"  # in a page's namespace: what its last block printed
REPLACED = "__replaced__"  # in a page's namespace: (text of a block, what it has to be)


class Python(PythonEvaluator):
    """Executes a block and keeps what it prints."""

    def __call__(self, example: Example) -> None:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            super().__call__(example)
        example.namespace[PRINTED] = out.getvalue().replace(f"{ROOT}/", "")


def compare(example: Example) -> None:
    """A ``text`` block against what the block before it printed."""
    got, want = str(example.namespace.pop(PRINTED, "")), str(example.parsed)
    assert got, "no block before this one printed anything"
    got = "\n".join(line.rstrip() for line in got.rstrip().splitlines()) + "\n"
    if not AS_WRITTEN or doctest.OutputChecker().check_output(want.rstrip() + "\n", got, doctest.ELLIPSIS):
        return
    if UPDATE:
        example.namespace.setdefault(REPLACED, []).append((example.region.start, want, got))
        return
    raise AssertionError(f"the page says\n{want}\nand the block printed\n{got}")


def shell(example: Example) -> None:
    """Execute a block that a ``text`` block follows; of others, check that what they name exists."""
    rest = example.document.text[example.region.end :]
    commands = [line.split(" #")[0].strip() for line in str(example.parsed).splitlines()]
    commands = [line for line in commands if line and not line.startswith("#")]
    if re.match(r"\s*(```)?\s*```text", rest):
        out = [_execute(command) for command in commands]
        example.namespace[PRINTED] = "".join(out).replace(f"{ROOT}/", "")
        return
    for command in commands:
        _check(shlex.split(command))


def _execute(command: str) -> str:
    folder = str(Path(sys.executable).parent)
    environment = os.environ | {"PATH": folder + os.pathsep + os.environ["PATH"]}
    done = subprocess.run(command, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _check(words: list[str]) -> None:
    if "&&" in words:
        cut = words.index("&&")
        _check(words[:cut])
        words = words[cut + 1 :]
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    match words:
        case ["nox", "-l"] | ["git" | "cd" | "cmake" | "perf" | "nsys" | "gdb", *_]:
            return
        case ["nox", "-s", *names]:
            wanted = names[: names.index("--")] if "--" in names else names
            missing = [name for name in wanted if name not in sessions()]
            assert not missing, f"the noxfile has no session {missing}"
        case ["python", "-m", "pip", "install", "-e", *folders]:
            missing = [
                name for name in folders if name != "-e" and not (ROOT / name / "pyproject.toml").exists()
            ]
            assert not missing, f"there is no package in {missing}"
        case ["pip", "install", *names] | ["python", "-m", "pip", "install", *names]:
            ours = {path.name for path in (ROOT / "packages").iterdir()} | {"fxstack-artifact", "nox"}
            assert {re.split(r"[\[<>=]", name)[0] for name in names if name[0] not in "-."} <= ours, names
        case ["python", "-m", module, *_]:
            assert importlib.util.find_spec(module) is not None, f"there is no module {module}"
        case ["python", file, *_]:
            assert (ROOT / file).exists() or any(ROOT.glob(f"packages/*/{file}")), f"there is no {file}"
        case ["fxstack", command, *_]:
            from fxstack.cli import commands

            assert command in commands.list_commands(None), f"fxstack has no command {command}"
        case _:
            raise AssertionError(f"what is {words}?")


def sessions() -> set[str]:
    """The names of the noxfile's sessions."""
    text = (ROOT / "noxfile.py").read_text()
    names = set(re.findall(r"@nox\.session(?:\(\))?\ndef (\w+)", text))
    names |= set(re.findall(r"@nox\.session\(name=\"([\w-]+)\"", text))
    names |= {f"tests-{path.name}" for path in (ROOT / "packages").iterdir()}
    return names | {f"tests-{kind}-3.{minor}" for kind in ("bytecode", "python") for minor in (12, 13)}


def parsed(page: Path) -> Document:
    """The page with its blocks."""
    languages: dict[str, Any] = {"python": Python(), "text": compare, "sh": shell}
    parsers = [CodeBlockParser(language, evaluator) for language, evaluator in languages.items()]
    return Sybil(parsers=[*parsers, SkipParser()]).parse(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_do_what_they_say(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    document = parsed(page)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(
        "FXSTACK_CACHE_DIR", str(tmp_path / "cache")
    )  # what is found does not depend on other pages
    torch.manual_seed(0)
    try:
        for example in document.examples():
            with contextlib.suppress(SkipTest):
                example.evaluate()
    finally:
        if UPDATE and REPLACED in document.namespace:
            _rewrite(page, document.namespace[REPLACED])


def _rewrite(page: Path, replaced: list[tuple[int, str, str]]) -> None:
    text = page.read_text()
    for start, want, got in reversed(replaced):
        head, tail = text[:start], text[start:]
        opening, newline, _ = tail.partition("\n")
        text = head + opening + newline + got + tail[len(opening) + 1 + len(want) :]
    page.write_text(text)


def _skipped(page: Path) -> list[str]:
    return re.findall(r"<!--+ skip: (?:next|start)([^\n]*)-->", page.read_text())


def test_few_blocks_are_skipped() -> None:
    skipped = {str(page.relative_to(ROOT)): _skipped(page) for page in PAGES}
    assert all(re.search(r'"[^"]{10,}"', reason) for reasons in skipped.values() for reason in reasons)
    assert sum(map(len, skipped.values())) <= 6, skipped


def test_no_block_escapes() -> None:
    """Each fenced block says what it is; a diagram has no language."""
    known = {"python", "text", "sh", "toml", "none", "c", "cpp", "json", ""}
    found = {
        f"{page.relative_to(ROOT)}: {language or '(no language)'}"
        for page in PAGES
        for language in re.findall(r"^ *```([^\n`]*)\n", page.read_text(), re.M)[::2]
        if language not in known
    }
    assert not found, "\n".join(sorted(found))


def test_the_index_of_decisions_has_each_once() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = re.findall(r"^\| \[(\d{4})\]\((\S+)\)", (folder / "README.md").read_text(), re.M)
    assert sorted(name for _, name in listed) == sorted(path.name for path in folder.glob("0*.md"))
    assert all(name.startswith(number) for number, name in listed)


@pytest.mark.parametrize(
    "record", sorted((ROOT / "docs" / "decisions").glob("0*.md")), ids=lambda path: path.name[:4]
)
def test_a_decision_has_all_its_parts(record: Path) -> None:
    text = record.read_text()
    assert text.startswith(f"# {record.name[:4]}: ")
    found = re.findall(r"^\*\*(Status|Context|Decision|Consequences|Alternatives)[.:]", text, re.M)
    parts = list(dict.fromkeys(found))
    assert parts[:4] == ["Status", "Context", "Decision", "Consequences"], parts
