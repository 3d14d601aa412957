"""The page about torch's own capture tests is held against a run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import peer_suite

PASSES = {"status": "pass", "cat": "behaviour", "graphs": 1}
STOCK = {
    "test_a.T.test_one": PASSES,
    "test_a.T.test_two": PASSES,
    "test_a.T.test_three": {**PASSES, "graphs": 0},
    "test_a.T.test_inside": {**PASSES, "cat": "internals"},
    "test_a.T.test_fails": {**PASSES, "status": "fail"},
}
PAGE = "# Tests\n\n## Open\n\nA reason.\n\n- `test_a.T.test_one`\n- `test_a.T.test_two`: its own\n"


@pytest.mark.parametrize(
    ("ours", "credited"),
    [
        (PASSES, True),
        (None, False),
        ({**PASSES, "status": "error"}, False),
        ({**PASSES, "graphs": 0}, False),
        ({**PASSES, "graphs": 0, "whole": 2}, True),
    ],
)
def test_a_pass_counts_with_graphs(ours: dict[str, object] | None, credited: bool) -> None:
    assert peer_suite.is_credited(PASSES, ours) is credited
    assert peer_suite.is_credited({**PASSES, "graphs": 0}, ours) is (
        ours is not None and ours["status"] == "pass"
    )


def test_what_stock_passes_of_behaviour_is_counted() -> None:
    assert peer_suite.uncredited(STOCK, {"test_a.T.test_two": PASSES}) == (
        3,
        {"test_a.T.test_one", "test_a.T.test_three"},
    )


def test_faults_name_what_is_missing_too_much_and_double() -> None:
    assert peer_suite.listed(PAGE) == {"Open": ["test_a.T.test_one", "test_a.T.test_two"]}
    assert peer_suite.faults(PAGE, {"test_a.T.test_one", "test_a.T.test_two"}) == []
    found = peer_suite.faults(PAGE + "- `test_a.T.test_two`\n", {"test_a.T.test_two", "test_a.T.test_three"})
    assert [fault.split()[0] for fault in found] == [
        f"test_a.T.test_{name}" for name in ("three", "one", "two")
    ]


def test_a_run_that_the_page_does_not_fit_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_suite, "PAGE", tmp_path / "page.md")
    peer_suite.PAGE.write_text(PAGE)
    paths = [tmp_path / "stock.json", tmp_path / "ours.json"]
    paths[0].write_text(json.dumps({"cases": STOCK}))
    paths[1].write_text(json.dumps({"cases": {"test_a.T.test_three": PASSES}}))
    assert peer_suite.main([str(path) for path in paths]) == 0
    paths[1].write_text(json.dumps({"cases": STOCK}))
    assert peer_suite.main([str(path) for path in paths]) == 1


def test_the_page_gives_each_test_one_reason() -> None:
    page = peer_suite.PAGE.read_text()
    names = [name for group in peer_suite.listed(page).values() for name in group]
    assert names
    assert peer_suite.faults(page, set(names)) == []
