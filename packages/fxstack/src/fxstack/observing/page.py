"""A record as one HTML file that needs no network: the files of ``assets``, and the record, put into ``page.html``."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from fxstack.observing.summary import summary

SCRIPTS = ("dom.js", "layout.js", "picture.js", "timeline.js", "sections.js", "main.js")
"""In the order in which they need each other."""


def html_page(data: Mapping[str, Any]) -> str:
    """The page of a record's ``data()``. What the record says is text in it, whatever it contains."""
    parts = {
        "STYLE": _asset("style.css"),
        "SCRIPT": "\n".join(map(_asset, SCRIPTS)),
        "SUMMARY": html.escape(summary(data).splitlines()[0]) if data["frames"] else "",
        "RECORD": json.dumps(data).replace("<", "\\u003c"),
    }
    begin, *rest = _asset("page.html").split("@@")
    page = [begin]
    for name, text in zip(rest[::2], rest[1::2], strict=True):
        page += [parts[name], text]
    return "".join(page)


def _asset(name: str) -> str:
    return files("fxstack.observing").joinpath("assets", name).read_text(encoding="utf-8")
