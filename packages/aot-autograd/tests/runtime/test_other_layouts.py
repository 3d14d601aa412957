"""A compiled graph that refuses the layout of what it is given: the program runs as it was written instead."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import symbolic_trace

from aot_autograd import finish, trace_joint


def refusing(*inputs: Any) -> Any:
    raise ValueError("[IND301] tensor input 0 is not what the graph was compiled for")


def program(x: Any, y: Any) -> Any:
    return x.sin() * y, x + 1


@pytest.mark.parametrize("refused", ["forward", "backward", "both"])
def test_results_and_gradients_are_there_all_the_same(library: Any, interpreter: Any, refused: str) -> None:
    given = [torch.rand(3, requires_grad=True), torch.rand(3)]
    traced = trace_joint(symbolic_trace(program), given, operators=library)
    assert traced.backward is not None
    run = finish(
        traced.plan,
        refusing if refused in ("forward", "both") else interpreter(traced.forward),
        refusing if refused in ("backward", "both") else interpreter(traced.backward),
        fallback=program,
    )
    results = run(*given)
    torch.testing.assert_close(tuple(results), program(*given), rtol=0, atol=0)
    (results[0].sum() + results[1].prod()).backward()
    found, given[0].grad = given[0].grad, None
    results = program(*given)
    (results[0].sum() + results[1].prod()).backward()
    torch.testing.assert_close(found, given[0].grad, rtol=0, atol=0)


def test_a_program_that_cannot_be_repeated_says_why(library: Any, interpreter: Any) -> None:
    given = [torch.rand(3, requires_grad=True), torch.rand(3)]
    traced = trace_joint(symbolic_trace(program), given, operators=library)
    run = finish(traced.plan, interpreter(traced.forward), refusing)
    with pytest.raises(ValueError, match="IND301"):
        run(*given)[0].sum().backward()


def test_inputs_that_are_written_hold_the_result_once(library: Any) -> None:
    def writing(x: Any) -> Any:
        x.add_(1)
        return x * 2

    traced = trace_joint(symbolic_trace(writing), [torch.zeros(3)], operators=library)
    run, x = finish(traced.plan, refusing, fallback=lambda x: (writing(x),)), torch.zeros(3)
    assert run(x)[0].tolist() == [2, 2, 2]
    assert x.tolist() == [1, 1, 1]
