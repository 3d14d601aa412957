"""Frames whose graphs raised (``runtime``): they run again, unless nobody may run them."""

from __future__ import annotations

import pytest

from dynamo_capture.runtime.second_runs import run_again


def test_a_frame_runs_again_after_its_graph_has_raised() -> None:
    factor = 2

    def f(a: int, /, b: int, *rest: int, c: int, **more: int) -> object:
        return (a + b) * factor, rest, c, more

    result = run_again(
        RuntimeError("graph"), f.__code__, globals(), f.__closure__ or (), [1, 2, 3], {"c": 4, "d": 5}
    )
    assert result == (6, (3,), 4, {"d": 5})


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), RecursionError()])
def test_what_ends_the_program_leaves(error: BaseException) -> None:
    with pytest.raises(type(error)):
        run_again(error, (lambda: None).__code__, {}, (), [], {})
