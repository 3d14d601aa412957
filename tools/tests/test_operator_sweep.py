"""The sweep over torch's operator database: a part of it agrees with eager, and what disagrees is found."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

pytest.importorskip("torch.testing._internal.common_methods_invocations", exc_type=ImportError)

from inductor_codegen.cache import ArtifactStore
from operator_sweep import report
from operator_sweep.__main__ import main
from operator_sweep.cases import Case, Sample, cases, copy_arguments
from operator_sweep.comparison import difference, outcome
from operator_sweep.verdict import Status, verdict_of

OPERATORS = (
    *(
        "add",
        "sum",
        "norm",
        "var",
        "cat",
        "t",
        "conj_physical",
        "select_scatter",
        "index_put",
        "take",
        "masked_select",
    ),
    *(
        "diagonal_scatter",
        "linalg.solve",
        "nn.functional.gelu",
        "nn.functional.dropout",
        "nn.functional.layer_norm",
    ),
    *(
        "nn.functional.interpolate",
        "nn.functional.conv2d",
        "linalg.cross",
        "unsafe_split",
        "logaddexp2",
        "nonzero",
    ),
)
CASES = list(cases(OPERATORS, (torch.float32, torch.bool, torch.complex64)))


@pytest.mark.parametrize("case", CASES, ids=[case.key for case in CASES])
def test_a_part_of_the_database(case: Case) -> None:
    found = verdict_of(case, 1)
    assert found.status in (Status.PASS, Status.BREAKS, Status.EAGER_REFUSES), (found.status, found.detail)


def _sample(function: Any) -> Sample:
    return Sample(function, (torch.arange(6.0).reshape(2, 3).requires_grad_(),), {}, lambda result: result)


@pytest.mark.parametrize(
    "other, kind",
    [
        (lambda x: x * 2, None),
        (lambda x: x * 2.1, "wrong"),
        (lambda x: (x * 2).detach(), "wrong"),
        (lambda x: (x * 2).double(), "wrong"),
        (lambda x: x + x.detach(), "wrong"),
        (lambda x: (x.t().contiguous() * 2).t(), "layout"),
    ],
    ids=["equal", "value", "differentiable", "dtype", "gradient", "strides"],
)
def test_differences_are_found(other: Any, kind: str | None) -> None:
    told, found = outcome(lambda x: x * 2, _sample(None)), outcome(other, _sample(None))
    what = difference(told, found, lambda: None, values=True)
    assert (what and what[0]) == kind


def test_results_in_an_inputs_memory_are_found() -> None:
    told, found = (
        outcome(lambda x: x.detach().clone(), _sample(None)),
        outcome(lambda x: x.detach(), _sample(None)),
    )
    what = difference(told, found, lambda: None, values=True)
    assert what is not None
    assert what[0] == "layout"


def test_a_result_nearer_to_float64_than_eager_is_right() -> None:
    sample = _sample(None)
    truth = outcome(lambda x: x.detach().double() / 3, sample)
    eager = outcome(lambda x: (x.detach().bfloat16() / 3).float(), sample)
    ours = outcome(lambda x: x.detach() / 3, sample)
    assert difference(eager, ours, lambda: truth, values=True) is None
    assert difference(ours, eager, lambda: truth, values=True) is not None


def test_copies_share_memory_as_the_originals_do() -> None:
    x = torch.zeros(4, 3)
    one, other, again = copy_arguments((x, x.t()[1:], x))
    one[0, 1] = 5
    assert other[0, 0] == 5
    assert again is one
    assert other.stride() == x.t()[1:].stride()
    assert not x.any()


def test_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "0.jsonl").write_text('{"started": "item bool"}\n')  # as if that pair had killed the process
    options = [
        "--only",
        "add,item,mm,to_sparse",
        "--dtypes",
        "float32,bool",
        "--samples",
        "1",
        "--state",
        str(tmp_path),
    ]
    assert main([*options, "--at-least", "100"]) == 1
    text = capsys.readouterr().out
    assert "error: the process died" in text
    assert "breaks: DEC104" in text
    assert "matrix products: 1" in text
    assert report.share_passed([]) == 0.0


def test_the_page_of_exceptions(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    options = [
        "--only",
        "add,sparse_sampled_addmm,nn.functional.gaussian_nll_loss",
        "--dtypes",
        "float32",
        "--samples",
        "1",
        "--page",
        str(file),
    ]
    assert main(options) == 0
    text = file.read_text()
    assert "| as eager, through a reported break | 1 (25.00%) |" in text
    assert "`sparse_sampled_addmm` (float32)" in text
    assert "Not as eager" not in text


@pytest.mark.parametrize("name", ["mul", "nn.functional.gelu"])
def test_generated_kernels(name: str, tmp_path: Path) -> None:
    (case,) = (case for case in cases([name], (torch.float32,)) if not case.in_place)
    found = verdict_of(case, 1, ArtifactStore(tmp_path))
    assert found.status is Status.PASS, found.detail
    assert any(tmp_path.rglob("*.so"))
