"""What a release is tried with follows from the packages' metadata."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from release_check import ranges
from release_check.environments import Place, smoke_test, tried
from release_check.outcomes import Outcome, table
from workspace import BY_NAME, PACKAGES


def test_the_lower_ends_are_those_of_the_metadata() -> None:
    assert ranges.lowest([BY_NAME["fx-interface"]], "3.11") == {}
    assert ranges.lowest([BY_NAME["inductor-codegen"]], "3.11") == {"platformdirs": "4"}
    lowest = ranges.lowest(PACKAGES, "3.11")
    assert "torch" not in lowest
    assert not set(BY_NAME) & set(lowest)
    assert lowest["click"] == "8.1"
    assert ranges.constraints({"b": "2", "a": "1"}) == "a==1\nb==2\n"


def test_the_ranges_end_where_the_tried_versions_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ranges.outside_of_ranges() == []
    monkeypatch.setattr(ranges, "TORCHES", ("2.11.0", "2.12.0"))
    assert any("torch" in problem for problem in ranges.outside_of_ranges())


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_every_package_has_a_smoke_test(package: object) -> None:
    assert smoke_test(package).is_file()  # type: ignore[arg-type]


def test_a_wheel_that_is_none_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("virtualenv", reason="release-check makes environments by it")
    monkeypatch.setenv("RELEASE_CHECK_FOLDER", str(tmp_path))
    name = f"fx_interface-{BY_NAME['fx-interface'].version}-py3-none-any.whl"
    wheel = tmp_path / name
    wheel.write_bytes(b"no zip")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    place = Place(python, Path(sys.executable), "none", None)
    outcome = tried(place, ["fx-interface"], {"fx-interface": wheel}, {})
    assert outcome.verdict == "failed"
    assert name in outcome.text


def test_what_was_not_run_is_a_line_with_its_reason() -> None:
    lines = table([Outcome("everything", "3.13", "2.11.0", "any", "not run", "no CPython 3.13 here")])
    assert "not run: no CPython 3.13 here" in lines
