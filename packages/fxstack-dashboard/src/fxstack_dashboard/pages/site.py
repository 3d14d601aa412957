"""Writes the site: an overview, a table of all rows, a page for each model, comparisons of runs, and the runs.

Every page is whole in itself, with style and scripts inside, and allows nothing else to be loaded. All text of results
is escaped by the templates; data for scripts is JSON in which no tag can begin.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fxstack_dashboard.judging.metrics import METRICS
from fxstack_dashboard.judging.regressions import SIGMAS, UNMEASURED
from fxstack_dashboard.pages.contents import Contents, run_name, slug

PAGES = ("index.html", "results.html", "compare.html", "runs.html")


def write_site(contents: Contents, folder: Path) -> list[Path]:
    """Write all pages into a folder, which is made if there is none; returns their paths. Files of pages that are no
    longer written are left as they are."""
    environment = _environment()
    written = []

    def write(name: str, template: str, root: str, **values: Any) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        page = environment.get_template(template).render(root=root, here=name, contents=contents, **values)
        path.write_text(page, encoding="utf-8")
        written.append(path)

    for name in PAGES:
        write(name, name, "")
    for suite, model in contents.models():
        parts = contents.model(suite, model)
        write(f"models/{slug(suite, model)}.html", "model.html", "../", suite=suite, model=model, parts=parts)
    return written


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("fxstack_dashboard.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        style=_asset("style.css"),
        script={name: _asset(f"{name}.js") for name in ("table", "compare")},
        metrics=METRICS,
        slug=slug,
        run_name=run_name,
        rule={"sigmas": SIGMAS, "unmeasured": UNMEASURED},
    )
    return environment


def _asset(name: str) -> Markup:
    return Markup(files("fxstack_dashboard.pages").joinpath("assets", name).read_text(encoding="utf-8"))
