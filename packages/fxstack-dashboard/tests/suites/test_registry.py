"""Suites by name, and files of a user's own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from fxstack_dashboard.errors import DashboardError
from fxstack_dashboard.suites import registry
from fxstack_dashboard.suites.registry import SUITES, Suite, load_suite
from fxstack_dashboard.suites.workload import Workload


@pytest.mark.parametrize("phase", ["inference", "training"])
def test_tiny_models_are_the_same_each_time_they_are_built(phase: str) -> None:
    _, workloads = load_suite("tiny")
    for workload in workloads.values():
        one, args, kwargs = workload.build(phase, "cpu")
        other, args_again, _ = workload.build(phase, "cpu")
        assert one.training == (phase == "training")
        assert torch.equal(workload.loss(one(*args, **kwargs)), workload.loss(other(*args_again, **kwargs)))


def test_names_in_the_tables_are_different() -> None:
    for suite in SUITES.values():
        names = [workload.name for workload in suite.workloads()]
        assert len(set(names)) == len(names) > 0


@pytest.mark.parametrize(
    "name, suite",
    [(workload.name, suite.name) for suite in SUITES.values() for workload in suite.workloads()],
)
def test_every_model_of_an_installed_suite_gives_a_loss(name: str, suite: str) -> None:
    why = SUITES[suite].missing()
    if why is not None:
        pytest.skip(why)
    workload = load_suite(suite)[1][name]
    module, args, kwargs = workload.build("training", "cpu")
    with torch.no_grad():
        loss = workload.loss(module(*args, **kwargs))
    assert loss.shape == ()
    assert torch.isfinite(loss)


def test_a_model_is_made_in_float64() -> None:
    pytest.importorskip("transformers", reason="transformers is not installed")
    workload = load_suite("transformers")[1]["bert"]
    module, args, kwargs = workload.build("training", "cpu", torch.float64)
    loss = workload.loss(module(*args, **kwargs))
    assert loss.dtype is torch.float64
    assert loss.requires_grad


def test_dropout_is_off_in_training() -> None:
    workload = Workload("d", lambda: torch.nn.Sequential(torch.nn.Dropout(0.5)), lambda: (torch.ones(99),))
    module, args, _ = workload.build("training", "cpu")
    assert torch.equal(module(*args), args[0])


def test_a_users_file_is_a_suite(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("import torch\nmake = lambda: torch.nn.Linear(2, 2)\n")
    path = tmp_path / "mine.py"
    path.write_text(
        "import torch, beside\n"
        "from fxstack_dashboard import Workload\n"
        "WORKLOADS = [('one', beside.make, lambda: (torch.ones(1, 2),)),\n"
        "  Workload('two', beside.make, lambda: {'input': torch.ones(1, 2)}, phases=('inference',))]\n"
    )
    name, workloads = load_suite(str(path))
    assert name == "mine"
    assert workloads.keys() == {"one", "two"}
    module, args, kwargs = workloads["two"].build("inference", "cpu")
    assert module(*args, **kwargs).shape == (1, 2)
    path.write_text("SUITE = 'other'\nWORKLOADS = []\n")
    assert load_suite(str(path)) == ("other", {})


@pytest.mark.parametrize(
    "text, code",
    [
        ("1 / 0", "DSH103"),
        ("", "DSH103"),
        ("WORKLOADS = 'text'", "DSH103"),
        ("WORKLOADS = [1]", "DSH103"),
        ("WORKLOADS = [('name', 1, 2)]", "DSH103"),
        ("WORKLOADS = [('name', print, print)] * 2", "DSH103"),
        (
            "from fxstack_dashboard import Workload\nWORKLOADS = [Workload('n', print, print, ('sleep',))]",
            "DSH103",
        ),
    ],
)
def test_a_file_that_does_not_follow_the_protocol_is_refused(tmp_path: Path, text: str, code: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(DashboardError) as caught:
        load_suite(str(path))
    assert caught.value.code == code
    assert "mine.py" in str(caught.value)


def test_what_is_not_here_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    absent = Suite("timm", "", "no_such_library", SUITES["timm"].workloads)
    (tmp_path / "broken_library.py").write_text("raise RuntimeError('built for another torch')")
    monkeypatch.syspath_prepend(tmp_path)
    broken = Suite("torchvision", "", "broken_library", SUITES["timm"].workloads)
    monkeypatch.setattr(registry, "SUITES", {"timm": absent, "torchvision": broken})
    with pytest.raises(DashboardError, match=r"DSH102.*pip install 'fxstack-dashboard\[no_such_library\]'"):
        load_suite("timm")
    with pytest.raises(DashboardError, match=r"DSH102.*built for another torch"):
        load_suite("torchvision")
    with pytest.raises(DashboardError, match="DSH101"):
        load_suite("no such suite")
    with pytest.raises(DashboardError, match="DSH101"):
        load_suite("no such file.py")
