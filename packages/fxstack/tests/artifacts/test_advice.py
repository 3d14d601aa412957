"""What an error of a call that does not fit says to do: done to the letter, the call fits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import fxstack
from fxstack_artifact import ContractError, load


def _advice(path: Path, args: tuple[Any, ...]) -> str:
    with pytest.raises(ContractError) as caught:
        load(path)(*args)
    assert caught.value.code in ("FXA305", "FXA311")
    return caught.value.action


def _named(batch: dict[str, torch.Tensor], pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    return batch["ids"].sum() * pair[1].relu()


def _scaled(x: torch.Tensor, scale: float) -> torch.Tensor:
    return x.sin() * scale


BATCH, PAIR = {"ids": torch.ones(3, 4)}, (torch.ones(2), torch.ones(5, 6))


@pytest.mark.parametrize(
    "function, made_with, dynamic_shapes, called_with",
    [
        (lambda x: x.relu(), (torch.ones(4, 3),), None, (torch.ones(6, 3),)),
        (lambda x: x.relu(), (torch.ones(4, 3),), None, (torch.ones(4, 7),)),
        (_named, (BATCH, PAIR), None, ({"ids": torch.ones(3, 9)}, PAIR)),
        (_named, (BATCH, PAIR), None, (BATCH, (torch.ones(2), torch.ones(8, 6)))),
        (lambda x: x.relu(), (torch.ones(4, 3),), {"x": {0: fxstack.Dim("n", max=8)}}, (torch.ones(9, 3),)),
        (lambda x: x.relu(), (torch.ones(8, 3),), {"x": {0: fxstack.Dim("n", min=4)}}, (torch.ones(3, 3),)),
        (_scaled, (torch.ones(3), 2.0), None, (torch.ones(3), 4.0)),
    ],
)
def test_the_shapes_that_an_error_names_make_the_call_fit(
    tmp_path: Path, function: Any, made_with: Any, dynamic_shapes: Any, called_with: Any
) -> None:
    first, second = tmp_path / "first.fxa", tmp_path / "second.fxa"
    fxstack.aot_compile(function, made_with, path=first, dynamic_shapes=dynamic_shapes)
    told = re.search(r"dynamic_shapes=(\{.*\})", _advice(first, called_with))
    assert told is not None
    shapes = eval(told[1], {"fxstack": fxstack})
    fxstack.aot_compile(function, made_with, path=second, dynamic_shapes=shapes)
    artifact = load(second)
    for args in (made_with, called_with):
        torch.testing.assert_close(artifact(*args), function(*args))


@pytest.mark.parametrize(
    "dynamic_shapes, called_with, words",
    [
        (None, torch.ones(1, 3), "pass 4 there; a size of 1 needs an entry point of its own"),
        ({"x": {0: "n"}}, torch.ones(1, 3), "sizes of 0 and 1 are in no range"),
        (None, torch.ones(4), "pass a tensor of 2 dimensions"),
    ],
)
def test_what_no_name_can_mend_is_said(
    tmp_path: Path, dynamic_shapes: Any, called_with: torch.Tensor, words: str
) -> None:
    path = tmp_path / "m.fxa"
    fxstack.aot_compile(lambda x: x.relu(), (torch.ones(4, 3),), path=path, dynamic_shapes=dynamic_shapes)
    action = _advice(path, (called_with,))
    assert words in action
    assert "dynamic_shapes" not in action


def test_a_size_that_was_one_needs_another_example(tmp_path: Path) -> None:
    path = tmp_path / "m.fxa"
    fxstack.aot_compile(lambda x: x.relu(), (torch.ones(1, 3),), path=path)
    action = _advice(path, (torch.ones(5, 3),))
    assert "from an input that has at least 2 there, with dynamic_shapes={" in action


def test_a_builtin_without_a_signature_is_told(tmp_path: Path) -> None:
    with pytest.raises(fxstack.ExportError, match=r"FXS502.*'relu' is a builtin"):
        fxstack.aot_compile(torch.relu, (torch.ones(3),), path=tmp_path / "m.fxa")
