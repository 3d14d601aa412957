"""The report as a person sees it: in a real browser without network, where one is installed."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import fxstack
from fxstack.observing.page import html_page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


def _shown(x: torch.Tensor) -> torch.Tensor:
    print("seen")
    return x * 2


def _program(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(_shown(torch.relu(x) + 1), -1)


def _data() -> dict[str, Any]:
    compiled = fxstack.compile(_program)
    with fxstack.recording() as record:
        for size in (4, 7):
            compiled(torch.ones(size, 5, requires_grad=True))
    return record.data()


def _large(nodes: int) -> dict[str, Any]:
    """A record of one graph with so many nodes, some of which have inputs from far above."""
    made: list[list[Any]] = [["x", "input", "float32[4]", [], None]]
    for number in range(1, nodes):
        inputs = sorted({number - 1, max(0, number - 7), number // 2 if number % 50 == 0 else number - 1})
        made.append([f"n{number}", "add", "float32[4]", inputs, ["/program.py", 1 + number % 40, "f"]])
    lines = [
        f"  %{name}: {spec} = {label}()   # /program.py:{1 + n % 40} in f"
        for n, (name, label, spec, *_) in enumerate(made)
    ]
    empty = {
        name: []
        for name in (
            "frames",
            "spans",
            "breaks",
            "guards",
            "recompiles",
            "launches",
            "calls",
            "cache",
            "memory",
            "steps",
            "uncompiled",
        )
    }
    graph = {
        "frame": 0,
        "dialect": "torch",
        "role": "captured",
        "text": "\n".join(["graph(torch):", *lines]),
        "nodes": made,
    }
    sources = {
        "/program.py": {str(n): f"line {n} </script><img src=x onerror=alert(1)>" for n in range(1, 60)}
    }
    return {
        "format": 1,
        "when": "",
        "versions": {},
        **empty,
        "graphs": [graph],
        "kernels": {},
        "sources": sources,
    }


def test_the_page_loads_nothing_and_its_data_cannot_end_it() -> None:
    page = html_page(_large(3))
    assert "@@" not in page
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", page)
    assert "http" not in re.sub(r"http-equiv|http://www.w3.org/2000/svg", "", page)
    assert page.count("</script>") == 2
    assert "<img" not in page


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


class _Page:
    """A page that is open, and all that went wrong in it."""

    def __init__(self, browser: Any, folder: Path, data: dict[str, Any]) -> None:
        file = folder / "report.html"
        file.write_text(html_page(data), encoding="utf-8")
        self.page = browser.new_page(viewport={"width": 1200, "height": 900})
        self.page.set_default_timeout(
            120_000
        )  # a busy machine lays out 5,000 nodes in more than half a minute
        self.wrong: list[str] = []
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", lambda request: self.asked(request.url))
        self.page.goto(file.as_uri())

    def asked(self, address: str) -> None:
        if not address.startswith(("file:", "data:")):
            self.wrong.append(address)

    def view(self) -> str:
        """Where the first open picture is looked at, as its transform."""
        self.page.wait_for_timeout(100)
        return str(self.page.get_attribute("#graph-0 svg > g", "transform"))


@pytest.fixture
def report(browser: Any, tmp_path: Path) -> Iterator[_Page]:
    """The report of a program with a break and a recompilation."""
    made = _Page(browser, tmp_path, _data())
    yield made
    assert made.wrong == []
    made.page.close()


def test_breaks_recompilations_and_stages_are_shown(report: _Page) -> None:
    page = report.page
    stop = page.locator("#break-0").inner_text()
    assert "print() writes to the terminal" in stop
    assert "to do: print, log and do file work outside" in stop
    assert page.locator("#recompile-0 .old").inner_text() == "sizes [4, 5]"
    assert page.locator("#recompile-0 .new").inner_text() == "[7, 5]"
    assert page.locator(".timeline .bar").count() > 20
    bar = page.locator(".timeline .bar").first
    assert re.search(r"\d ms", bar.get_attribute("title"))


def test_a_break_that_several_versions_have_is_one_entry(report: _Page) -> None:
    page = report.page
    assert "CAP236 2 times print() writes" in page.locator("#break-0 > summary").inner_text()
    assert page.locator("#break-0 .body a[href^='#frame-']").count() == 2
    assert page.locator("#break-1").count() == 0


def test_what_a_reader_asks_first_comes_first(report: _Page) -> None:
    """What was compiled, where the time went, and what stands in the way, before every graph."""
    shown = report.page.locator("#summary").inner_text()
    assert re.match(r"\d+ compilations in [\d.]+ s: \d+ graphs, ", shown), shown
    links = report.page.locator("#contents a").all()
    names = [link.get_attribute("href") for link in links]
    assert names[:4] == ["#time", "#graph-breaks", "#recompilations", "#runs-uncompiled"]
    assert names.index("#graphs") > names.index("#steps-by-time")


def test_a_link_to_a_line_opens_the_source_there(report: _Page) -> None:
    page = report.page
    page.click("#break-0 .body a >> nth=0")
    line = _shown.__code__.co_firstlineno + 1
    chosen = page.locator(".line.chosen")
    assert chosen.inner_text().startswith(f"{line}")
    assert 'print("seen")' in chosen.inner_text()
    assert chosen.is_visible()
    assert "broken" in chosen.get_attribute("class")


def test_a_link_to_a_compilation_opens_it(report: _Page) -> None:
    page = report.page
    page.click("#recompile-0 .body p.soft a")
    frame = page.locator(page.evaluate("location.hash"))
    assert frame.get_attribute("open") is not None
    assert "was sizes [4, 5]" in frame.inner_text()


def test_search_leaves_what_fits(report: _Page) -> None:
    page = report.page
    page.fill("#search", "softmax")
    found = int(page.inner_text("#found").split()[0])
    assert 0 < found < page.locator("#sections details, #sections tbody tr").count()
    assert page.locator("#break-0").is_hidden()
    page.fill("#search", "no such text")
    assert page.inner_text("#found") == "0 found"
    page.fill("#search", "")
    assert page.locator("#break-0").is_visible()
    assert page.inner_text("#found") == ""


def test_parts_fold(report: _Page) -> None:
    page = report.page
    page.click("#fold")
    assert page.locator("details[open]").count() == 0
    page.click("#unfold")
    closed = "#sections > details:not([open])"
    assert page.locator(closed).count() == 0
    assert "tensor_match" in page.locator("#guards-0").inner_text()
    assert 'extern "C"' in page.locator("[id^=kernel-] pre").first.inner_text()


def test_steps_lead_to_their_kernels_and_memory_is_a_curve(browser: Any, tmp_path: Path) -> None:
    compiled = fxstack.compile(lambda x: torch.softmax(x @ x, -1).sum())
    with fxstack.recording(times=True) as record:
        compiled(torch.ones(8, 8))
    made = _Page(browser, tmp_path, record.data())
    page = made.page
    row = page.locator("h2#steps-by-time + table tbody tr", has_text="kernel_").first
    row.locator("a").click()
    assert page.locator(page.evaluate("location.hash")).get_attribute("open") is not None
    page.click("#memory-0 > summary")
    bars = page.locator("#memory-0 svg rect")
    assert bars.count() == len(record.data()["memory"][0]["steps"])
    assert "bytes" in bars.first.locator("title").text_content()
    assert made.wrong == []
    page.close()


def test_a_graph_is_a_picture_and_text_that_know_each_other(report: _Page) -> None:
    page = report.page
    page.click("#graph-0 > summary")
    page.wait_for_selector("#graph-0 svg [data-node]")
    labels = page.locator("#graph-0 svg text:not(.spec)").all_text_contents()
    assert labels == ["x", "relu", "add", "return"]
    page.locator("#graph-0 .picture").scroll_into_view_if_needed()
    box = page.locator("#graph-0 svg [data-node='1'] rect").bounding_box()
    page.mouse.click(box["x"] + 20, box["y"] + 10)
    assert page.locator("#graph-0 .graph-text .chosen").inner_text().strip().startswith("%relu:")
    assert page.locator("#graph-0 .chosen-node a").get_attribute("href").startswith("#line-")
    page.click("#graph-0 .graph-text .line[data-node='2'] .to-node")
    page.wait_for_selector("#graph-0 svg rect.chosen")
    assert page.locator("#graph-0 .chosen-node").inner_text().startswith("%add: float32[4, 5] grad = add")


def test_five_thousand_nodes_can_be_seen_whole_and_near(browser: Any, tmp_path: Path) -> None:
    opened = _Page(browser, tmp_path, _large(5000))
    page = opened.page
    page.click("#graph-0 > summary")
    page.wait_for_selector("#graph-0 svg path.edges")
    near = opened.view()
    assert 0 < page.locator("#graph-0 svg [data-node]").count() <= 350
    page.click("#graph-0 .fit")
    whole = opened.view()
    assert whole != near
    assert page.locator("#graph-0 svg [data-node]").count() == 0  # one path from afar
    drawn = page.locator("#graph-0 svg path.far").first.get_attribute("d")
    assert drawn.count("M") == 4999
    page.locator("#graph-0 .picture").scroll_into_view_if_needed()
    box = page.locator("#graph-0 .picture").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.wheel(0, -2000)
    zoomed = opened.view()
    assert zoomed != whole
    assert page.locator("#graph-0 svg [data-node]").count() > 0
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 60)
    page.mouse.up()
    assert opened.view() != zoomed
    page.click("#graph-0 .graph-text .line[data-node='4321'] .to-node")
    opened.view()
    assert page.locator("#graph-0 svg [data-node='4321']").count() == 1
    assert page.evaluate("performance.now()") < 60_000
    assert opened.wrong == []
    page.close()


TIMED = """async (act) => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const before = performance.now();
  new Function(act)();
  await frame();  // what it began is drawn in this one
  await frame();
  return performance.now() - before;
}"""
TYPED = 'const f = document.getElementById("search"); f.value = "{}"; f.dispatchEvent(new Event("input"))'


def test_five_thousand_nodes_are_searched_folded_and_followed(browser: Any, tmp_path: Path) -> None:
    """What each takes in milliseconds is printed (pytest -s); the bound is what nobody would wait for."""
    opened = _Page(browser, tmp_path, _large(5000))
    page = opened.page
    load = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    times = {"load": load, "search": page.evaluate(TIMED, TYPED.format("n4321"))}
    assert page.inner_text("#found") == "1 found"
    assert page.locator("#graph-0").is_visible()
    times["search, nothing found"] = page.evaluate(TIMED, TYPED.format("no such text"))
    assert page.inner_text("#found") == "0 found"
    assert page.locator("#graph-0").is_hidden()
    page.evaluate(TIMED, TYPED.format(""))
    times["open the graph"] = page.evaluate(TIMED, "document.querySelector('#graph-0 > summary').click()")
    assert page.locator("#graph-0 svg path.edges").count() > 0
    times["all of it in view"] = page.evaluate(TIMED, "document.querySelector('#graph-0 .fit').click()")
    times["fold all"] = page.evaluate(TIMED, "document.getElementById('fold').click()")
    assert page.locator("details[open]").count() == 0
    times["unfold all"] = page.evaluate(TIMED, "document.getElementById('unfold').click()")
    assert page.locator("#sections > details:not([open])").count() == 0
    page.click("#graph-0 .graph-text .line[data-node='4321'] a:not(.to-node)")
    chosen = page.locator(".line.chosen[id]")
    assert chosen.inner_text().startswith("2")  # 1 + 4321 % 40
    assert chosen.is_visible()
    print({what: round(time, 1) for what, time in times.items()})
    assert max(times.values()) < 60_000, times
    assert opened.wrong == []
    page.close()


def test_no_two_nodes_lie_on_each_other(browser: Any, tmp_path: Path) -> None:
    page = _Page(browser, tmp_path, _large(1500)).page
    places = page.evaluate("layered(record.graphs[0].nodes).places.map(({x, y}) => [x, y])")
    width, height = page.evaluate("[WIDTH, HEIGHT]")
    rows: dict[float, list[float]] = {}
    for x, y in places:
        rows.setdefault(y, []).append(x)
    for found in rows.values():
        found.sort()
        assert all(after - before >= width for before, after in itertools.pairwise(found))
    levels = sorted(rows)
    assert all(after - before >= height for before, after in itertools.pairwise(levels))
    page.close()
