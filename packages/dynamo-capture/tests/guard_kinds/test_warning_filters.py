"""What filters make of a warning."""

import warnings

import pytest

from dynamo_capture.guard_kinds.warning_filters import warning_raises


@pytest.mark.parametrize(
    ("message", "category", "module", "line", "raises"),
    [
        ("", Warning, "", 0, True),
        ("care", UserWarning, "here", 7, True),
        ("care", DeprecationWarning, "", 0, False),
        ("other", Warning, "", 0, False),
        ("", Warning, "there", 0, False),
        ("", Warning, "", 8, False),
    ],
)
def test_it_agrees_with_python(message, category, module, line, raises):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quiet = warning_raises("careful", UserWarning, "here", 7)
        warnings.filterwarnings("error", message, category, module, line)
        asked = warning_raises("careful", UserWarning, "here", 7)
        assert asked.expected is raises
        assert asked.holds(warnings.filters)
        assert quiet.holds(warnings.filters) is not raises
        try:
            warnings.warn_explicit("careful", UserWarning, "file", 7, "here")
            assert not raises
        except UserWarning:
            assert raises


def test_the_last_filter_decides():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("always")
        assert not warning_raises("careful", UserWarning, None, 7).expected
