"""Call targets have names that lead back to them, the same in every process, and nothing dangerous has one."""

from __future__ import annotations

import math
import operator
import os
import re
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from fx_interface import CorruptArtifactError, UnsupportedProgramError, call_block, size_max, size_min
from fx_interface.dialects.prims import PRIMS
from fx_interface.serialization.target_names import target_name, target_of

TARGETS = [
    torch.add,
    torch.einsum,
    torch.softmax,
    F.gelu,
    F.scaled_dot_product_attention,
    F.max_pool2d,
    torch.special.erf,
    torch.linalg.norm,
    torch.fft.fft,
    torch.Tensor.add,
    torch.Tensor.__getitem__,
    torch.sym_max,
    operator.getitem,
    operator.setitem,
    operator.iadd,
    math.sqrt,
    len,
    getattr,
    torch._VF.atleast_3d,
    torch._C._set_grad_enabled,
    torch.amp._enter_autocast,
    torch.amp._exit_autocast,
    call_block,
    size_min,
    size_max,
    torch.ops.aten.add.Tensor,
    torch.ops.aten.relu.default,
    torch.ops.aten.add,
    *PRIMS.values(),
]


def _without_address(value: Any) -> str:
    """The same text in each process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


@pytest.mark.parametrize("target", TARGETS, ids=_without_address)
def test_names_lead_back(target: Any) -> None:
    assert target_of(target_name(target)) is target


def test_readable_names() -> None:
    assert target_name(operator.add) == "fn:operator.add"
    assert target_name(F.gelu) == "fn:torch.nn.functional.gelu"
    assert target_name(torch.ops.aten.add.Tensor) == "op:aten.add.Tensor"
    assert target_name(PRIMS["add"]) == "prim:add"


@pytest.mark.parametrize(
    "target",
    [os.system, eval, exec, torch.load, torch.compile, operator.call, lambda: 0],
    ids=_without_address,
)
def test_what_has_no_name(target: Any) -> None:
    with pytest.raises(UnsupportedProgramError, match="FXI302"):
        target_name(target)


def test_a_custom_operator_has_a_name() -> None:
    library = torch.library.Library("fx_interface_tests", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    op = torch.ops.fx_interface_tests.twice.default
    assert target_name(op) == "op:fx_interface_tests.twice.default"
    assert target_of(target_name(op)) is op


def test_an_unknown_name_is_corrupt() -> None:
    with pytest.raises(CorruptArtifactError, match="does not exist here"):
        target_of("fn:os.system")
