"""Runs the code blocks of pages, in order and in one namespace for each page."""

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["joint-graphs.md", "quick-start.md", "tour.md"],
).pytest()
