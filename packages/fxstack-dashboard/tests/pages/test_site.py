"""The pages: all that results say is text in them, every link leads somewhere, and nothing else is loaded."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from fxstack_dashboard.judging.history import History
from fxstack_dashboard.judging.summaries import summarize
from fxstack_dashboard.pages.contents import Contents, slug
from fxstack_dashboard.pages.site import write_site
from fxstack_dashboard.storing.records import Key, Result, Run

HOSTILE = "</script><img src=x onerror=alert(1)>&\"'{{ 7 * 7 }}"
MACHINE = {"processor": HOSTILE, "cores": 2, "memory_gib": 8, "system": "Linux", "gpus": [HOSTILE]}
Write = Callable[..., list[Path]]


@pytest.fixture
def write(make_run: Callable[..., Run], make_result: Callable[..., Result], tmp_path: Path) -> Write:
    """Writes a site of three runs, in the last of which a row became slower and another fails."""

    def write(text: str = "plain") -> list[Path]:
        runs = [make_run(n, label=text, versions={text: text}) for n in range(3)]
        slower = Key("tiny", "gated", "fxstack", "inference", "cpu")
        failing = Key(text, text, text, "training", "cpu")
        results = []
        for run in runs:
            last = run is runs[-1]
            figures = {
                "eager_s": 0.02,
                "step_s": 0.02 if last else 0.01,
                "error": float("inf"),
                "error_eager": 0.0,
            }
            results.append(make_result(run.id, key=slower, figures=figures))
            status = {"status": "fail", "stage": "compile", "reason": text, "traceback": text} if last else {}
            results.append(make_result(run.id, key=failing, **status))
        rows: dict[tuple[tuple[str, int], Key], list[object]] = {}
        for (_, key), summary in summarize(results).items():
            rows.setdefault((("machine1", 1), key), []).append(summary)
        known = History({run.id: run for run in runs}, rows)  # type: ignore[arg-type]
        return write_site(Contents(known, {"machine1": MACHINE}, 0.05), tmp_path / "site")

    return write


def test_what_results_say_is_text_whatever_it_is(write: Write) -> None:
    for path in write(HOSTILE):
        page = path.read_text()
        assert "<img" not in page
        assert "49" not in re.sub(r"[\d.]*\d49|49\d|\.49", "", page) or "{{ 7" in page
        assert page.count("</script>") == page.count("<script")
        assert "onerror=alert" not in re.sub(
            r"&lt;img src=x onerror=alert|\\u003cimg src=x onerror=alert", "", page
        )


def test_pages_load_nothing_and_every_link_leads_to_a_page(write: Write) -> None:
    paths = write()
    assert {path.name for path in paths} >= {"index.html", "results.html", "compare.html", "runs.html"}
    for path in paths:
        page = path.read_text()
        assert "default-src 'none'" in page
        assert not re.search(r"(?:src|href)\s*=\s*[\"']?(?:https?:)?//", page)
        for link in re.findall(r'href="([^"]+)"', page):
            target, _, anchor = link.partition("#")
            if not target.startswith("data:"):
                found = path.parent / target
                assert found.exists(), (path, link)
                assert not anchor or f'id="{anchor}"' in found.read_text()


def test_a_regression_and_a_failure_are_on_the_overview_and_marked_on_the_model(write: Write) -> None:
    by_name = {path.name: path.read_text() for path in write()}
    overview = " ".join(by_name["index.html"].split())
    assert 'speed-up over eager 2.00x before, <span class="bad">1.00x now</span>' in overview
    assert '<span class="bad">pass before, fail now</span>' in overview
    model = by_name["tiny--gated.html"]
    assert model.count('class="s0 regression"') == 1
    assert 'class="number worse"' in model


def test_a_site_of_nothing_says_so(tmp_path: Path) -> None:
    for path in write_site(Contents(History({}, {}), {}, 0.05), tmp_path):
        assert "<main>" in path.read_text()
    assert "no results yet" in (tmp_path / "index.html").read_text()


def test_names_of_files_are_plain_and_different() -> None:
    given = [
        ("a", "b"),
        ("a", "b/c"),
        ("a", "b c"),
        ("a--b", "c"),
        ("a", "b--c"),
        ("..", "../x"),
        ("a", ".b"),
    ]
    names = [slug(*one) for one in given]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", name) for name in names)
    assert slug("tiny", "gated") == "tiny--gated"
