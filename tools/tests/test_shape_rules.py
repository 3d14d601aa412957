"""Shape rules held to eager: a part of the database in all layouts, and a wrong rule is found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

pytest.importorskip("torch.testing._internal.common_methods_invocations", exc_type=ImportError)

import shape_rules
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps import RULES

OPERATORS = (
    "add,masked_fill,pow,roll,max,sum,norm,cat,stack,addr,nn.functional.pad,nn.functional.glu,nan_to_num,renorm,"
    "nn.functional.leaky_relu,nn.functional.conv1d,nn.functional.nll_loss,nn.functional.binary_cross_entropy,diag_embed,"
    "nn.functional.threshold,nn.functional.hardtanh,linalg.cross,nn.functional.group_norm,t,view,expand,clone"
)


def test_rules_are_right_in_every_layout(capsys: pytest.CaptureFixture[str]) -> None:
    status = shape_rules.main(["--only", OPERATORS, "--samples", "2", "--layouts"])
    text = capsys.readouterr().out
    assert status == 0, text
    assert "wrong: 0" in text
    assert "mean of all rules" in text


def test_a_wrong_rule_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(x: TensorSpec, *args: object, **kwargs: object) -> TensorSpec:
        return TensorSpec(x.sizes, x.strides, torch.float64, x.device)

    monkeypatch.setitem(RULES._entries, torch.ops.aten.neg.default, wrong)
    found = shape_rules.measure(["neg"], 1, check=True, layouts=False)
    assert found["aten.neg.default"].wrong


@pytest.mark.parametrize("name", shape_rules.LAYOUTS)
def test_layouts_keep_sizes(name: str) -> None:
    x = torch.arange(24.0).reshape(2, 3, 4)
    made = shape_rules.LAYOUTS[name](x)
    assert made.shape == x.shape
    assert made.stride() != x.stride()
    assert "stretched" in name or torch.equal(made, x)
