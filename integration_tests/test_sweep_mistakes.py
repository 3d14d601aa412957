"""What sweeps keep of logged messages tells of no machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "sweeps"))
from mistakes import line_of, without_folders


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (
            "at /opt/env/lib/python3.11/site-packages/torch/nn/conv.py:560 in f",
            "at torch/nn/conv.py:560 in f",
        ),
        ("shown again by: python /tmp/check-z5x/fxs401_5c.py", "shown again by: python fxs401_5c.py"),
        ("strides: (4, 1) instead of (1, 4), 3/4 of a/b", "strides: (4, 1) instead of (1, 4), 3/4 of a/b"),
    ],
)
def test_paths_are_shortened(text: str, kept: str) -> None:
    assert without_folders(text) == kept


def test_an_exception_on_one_line() -> None:
    error = ImportError(
        "no Model in <module 'models.a' from '/opt/env/lib/python3.11/site-packages/models/a.py'>\nsorry"
    )
    assert line_of(error, 200) == "ImportError: no Model in <module 'models.a' from 'models/a.py'> sorry"
    assert (
        line_of(error, 50)
        == "ImportError: no Model in <module 'models.a' from 'models/a.py'>"[: len("ImportError: ") + 50]
    )
    assert line_of(ValueError(), 9) == "ValueError:"
