"""Facts about numbers in the words of a program."""

import pytest

from dynamo_capture.guard_kinds.fact_texts import fact_in_words


@pytest.mark.parametrize(
    "lines, expected",
    [
        (
            ["y0 = (x0 + 1)", "y1 = (0.1 / y0)", "return same(y1, 0.05) is True"],
            "0.1 / (self.step + 1) == 0.05",
        ),
        (["return same(x0, x1) is False"], "self.step != rate"),
        (["return (x0 < 3) is False and (x1 > x0) is True"], "not self.step < 3 and rate > self.step"),
        (["return True"], "True"),
    ],
)
def test_steps_become_one_expression(lines: list[str], expected: str) -> None:
    text = "\n    ".join(["def holds(x0, x1):", *lines])
    assert fact_in_words(text, ["self.step", "rate"]) == expected


def test_long_ones_keep_their_lines() -> None:
    steps = [f"y{n + 1} = (y{n} * y{n})" for n in range(40)]
    text = "\n    ".join(["def holds(x0):", "y0 = x0", *steps, "return (y40 < 1) is True"])
    told = fact_in_words(text, ["rate"])
    assert told.startswith("y0 = rate; y1 = y0 * y0; ")
    assert len(told) < 2000


def test_names_that_are_no_expressions_stay() -> None:
    assert fact_in_words("def holds(x0):\n    return (x0 < 1) is True", [".stack0[0]"]) == ".stack0[0] < 1"
