"""The pages as a person uses them: in a real browser without network, where one is installed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fxstack_dashboard.judging.history import history
from fxstack_dashboard.pages.contents import Contents
from fxstack_dashboard.pages.site import write_site
from fxstack_dashboard.storing.database import open_database
from fxstack_dashboard.storing.records import Key, Result, Run

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
HOSTILE = "</script><img src=x onerror=alert(1)>"
MACHINE = {"processor": "a processor", "cores": 2, "memory_gib": 8, "system": "Linux", "gpus": []}
MODELS = (("bert", 1.3), ("gpt2", 1.1), ("resnet", 2.0), (HOSTILE, 0.9))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (nox -s browser)")
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    with api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.fixture
def site(tmp_path: Path, make_run: Callable[..., Run], make_result: Callable[..., Result]) -> Path:
    """A site of six runs: in the last, gpt2 compiles three times as long and the hostile model fails."""
    with open_database(tmp_path / "results.db", create=True) as opened:
        for number in range(6):
            run, last = make_run(number, label=HOSTILE), number == 5
            opened.add_run(run, MACHINE)
            for model, speedup in MODELS:
                for backend in ("stock", "fxstack"):
                    key = Key("suite", model, backend, "inference", "cpu")
                    cold = 3.0 if last and model == "gpt2" else 1.0
                    figures = {
                        "eager_s": speedup,
                        "step_s": 1.0,
                        "cold_s": cold,
                        "graphs": 1.0,
                        "breaks": 0.0,
                    }
                    fails = last and model == HOSTILE and backend == "fxstack"
                    wrong = {"status": "fail", "stage": "compile", "reason": HOSTILE, "traceback": HOSTILE}
                    opened.add_result(
                        make_result(run.id, key=key, figures=figures, **(wrong if fails else {}))
                    )
        contents = Contents(history(opened), opened.machines(), 0.05)
    write_site(contents, tmp_path / "site")
    return tmp_path / "site"


class _Page:
    """An open page, and all that went wrong in it."""

    def __init__(self, browser: Any, site: Path) -> None:
        self.page = browser.new_page(viewport={"width": 1300, "height": 900})
        self.site = site
        self.wrong: list[str] = []
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: self.wrong.append(dialog.message))
        self.page.on("request", lambda request: self.asked(request.url))

    def asked(self, address: str) -> None:
        if not address.startswith(("file:", "data:")):
            self.wrong.append(address)

    def open(self, name: str) -> Any:
        self.page.goto((self.site / name).as_uri())
        return self.page


@pytest.fixture
def opened(browser: Any, site: Path) -> Iterator[_Page]:
    """A page of the site; when the test is over nothing went wrong in it."""
    made = _Page(browser, site)
    yield made
    assert made.wrong == []
    assert made.page.locator("img").count() == 0
    made.page.close()


def test_every_page_opens_without_errors_and_links_lead_on(opened: _Page) -> None:
    seen: set[str] = set()
    left = [(opened.site / "index.html").as_uri()]
    while left:
        address = left.pop()
        if address not in seen:
            seen.add(address)
            opened.page.goto(address)
            assert opened.page.locator("h1").count() == 1
            left += opened.page.eval_on_selector_all("a[href]", "all => all.map(a => a.href.split('#')[0])")
    assert len(seen) == len(list(opened.site.rglob("*.html"))) == 4 + len(MODELS)


def _column(page: Any, number: int) -> list[str]:
    cells = page.locator(f"#rows tbody tr:not(.hidden) td:nth-child({number})")
    return [text.strip() for text in cells.all_inner_texts()]


def test_the_table_sorts(opened: _Page) -> None:
    page = opened.open("results.html")
    page.get_by_role("button", name="speed-up over eager").click()
    up = [float(text.removesuffix("x")) for text in _column(page, 7) if text]
    assert up == sorted(up)
    page.get_by_role("button", name="speed-up over eager").click()
    down = [float(text.removesuffix("x")) for text in _column(page, 7) if text]
    assert down == sorted(up, reverse=True)
    assert _column(page, 7)[-1] == ""  # what was not measured comes last in both directions
    assert page.locator("th[aria-sort]").count() == 1
    page.get_by_role("button", name="model").click()
    assert _column(page, 2) == sorted(_column(page, 2))


def test_the_table_is_searched_and_filtered(opened: _Page) -> None:
    page = opened.open("results.html")
    assert page.inner_text("#found") == "8 of 8"
    page.fill("#search", "BERT")
    assert _column(page, 2) == ["bert", "bert"]
    page.fill("#search", "onerror")  # in a reason too
    assert set(_column(page, 2)) == {HOSTILE}
    page.fill("#search", "")
    page.select_option("[data-filter=backend]", "stock")
    assert set(_column(page, 4)) == {"stock"}
    page.select_option("[data-filter=status]", "fail")
    assert page.inner_text("#found") == "0 of 8"
    page.select_option("[data-filter=backend]", "")
    assert _column(page, 6) == ["fail: compile"]


def test_a_models_page_marks_the_regression_and_shows_the_traceback(opened: _Page) -> None:
    page = opened.open("index.html")
    page.click("li.verdict a:has-text('gpt2') >> nth=0")
    rings = page.locator("circle.regression")
    assert rings.count() == 2  # one of each backend
    assert "3 s" in rings.first.locator("title").text_content()
    assert page.locator("td.worse").first.inner_text() == "3 s"
    page.click("td a >> nth=0")
    assert page.url.endswith("runs.html#run-run0005")
    page.go_back()
    page.click("header .home")
    page.locator("h3:has-text('Do not pass') + ul a").first.click()
    assert page.locator("details pre").is_hidden()
    page.click("details summary")
    assert HOSTILE in page.locator("details pre").inner_text()


def test_two_runs_are_compared(opened: _Page) -> None:
    page = opened.open("compare.html")
    assert "8 rows in both: 3 figures worse, 0 better" in page.inner_text("#found")
    page.check("#changed")
    assert page.locator("#comparison tbody tr").count() == 3
    assert page.locator("#comparison td.worse").all_inner_texts().count("1 s → 3 s") == 2
    page.fill("#threshold", "500")
    assert page.locator("#comparison td.worse").all_inner_texts() == ["pass → fail"]
    page.select_option("#other", "run0001")
    page.select_option("#base", "run0000")
    assert page.locator("#comparison tbody tr").count() == 0
    page.uncheck("#changed")
    assert page.locator("#comparison tbody tr").count() == 8
    page.locator("#comparison a", has_text="resnet").first.click()
    assert page.url.endswith("models/suite--resnet.html")
