"""The tables against torch itself: no argument, mode, option or public function is missing, and none is made up."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
import torch
import torch._dynamo
import torch._inductor

import dynamo_capture
import fxstack
from dynamo_capture.session.stock_settings import COMES_WITH
from fxstack.torch_compile.arguments import ARGUMENTS, MODES
from fxstack.torch_compile.entry import ABSENT, ACCEPTED, COUNTERPART, DONE, Entry
from fxstack.torch_compile.functions import CHECKS, COMPILER, DYNAMO
from fxstack.torch_compile.option_families import FAMILIES
from fxstack.torch_compile.settings import COMPILER_SETTINGS, SETTINGS
from fxstack.torch_compile.table import TABLES
from fxstack.torch_compile.translation import every_option


def _names(entries: tuple[Entry, ...]) -> list[str]:
    return [entry.name for entry in entries]


def test_no_name_is_listed_twice() -> None:
    for title, _, entries in TABLES:
        assert len(set(_names(entries))) == len(entries), title
    assert len(set(every_option())) == len(every_option())


def test_arguments_are_those_of_torch_compile_and_of_ours() -> None:
    assert _names(ARGUMENTS) == list(inspect.signature(fxstack.compile).parameters)
    assert set(inspect.signature(torch.compile).parameters) <= set(_names(ARGUMENTS))


def test_modes_and_options_are_those_of_stocks_code_generator() -> None:
    assert set(torch._inductor.list_mode_options()) <= set(_names(MODES))
    of_torch_compile = {"guard_filter_fn", *(name for family in FAMILIES[:1] for name in family.names)}
    missing = set(torch._inductor.list_options()) - set(every_option())
    if torch.__version__.startswith("2.13"):
        assert missing == set()
        assert set(every_option()) - of_torch_compile == set(torch._inductor.list_options())


def test_functions_are_torchs() -> None:
    assert set(torch.compiler.__all__) <= set(_names(COMPILER))
    for entry in DYNAMO:
        _attribute(torch._dynamo, entry.name)
    for entry in CHECKS:
        _attribute(torch, entry.name)


def _attribute(owner: Any, path: str) -> Any:
    for name in path.split("."):
        owner = getattr(owner, name)
    return owner


@pytest.mark.parametrize("entries", [SETTINGS, COMPILER_SETTINGS])
def test_flags_are_torchs(entries: tuple[Entry, ...]) -> None:
    config = torch._dynamo.config if entries is SETTINGS else torch.compiler.config
    for entry in entries:
        getattr(config, entry.name)


def test_flags_that_are_read_are_listed_with_what_they_come_with() -> None:
    listed = {entry.name for entry in SETTINGS if entry.state == DONE}
    for name, value in COMES_WITH.items():
        assert name in listed
        assert getattr(torch._dynamo.config, name) == value


def test_counterparts_exist() -> None:
    for _, _, entries in TABLES:
        for entry in entries:
            assert entry.state in (DONE, ACCEPTED, COUNTERPART, ABSENT)
            for package, name in re.findall(r"`(fxstack|dynamo_capture)\.(\w+)", entry.here):
                assert hasattr({"fxstack": fxstack, "dynamo_capture": dynamo_capture}[package], name), entry
