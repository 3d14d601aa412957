"""What operators ask of content and fail without is checked in the graph; other questions stay open."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from aot_autograd.recording.content_queries import Answer, Questions
from fx_interface.errors import UnsupportedProgramError
from fx_interface.tensor_spec import TensorSpec

X = torch.arange(4.0) + 1


def test_what_a_program_fails_without_is_a_check(compiled: Any) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        if torch.allclose(x, x * 0):
            raise RuntimeError("nothing there")
        if not (x > 0).any().item():
            raise RuntimeError("nothing positive")
        return x * 2

    run = compiled(program)
    torch.testing.assert_close(run(X), X * 2, rtol=0, atol=0)
    for x, message in ((X * 0, "nothing there"), (-X, "nothing positive")):
        with pytest.raises(RuntimeError, match=message):
            run(x)


def test_a_derivative_checks_its_gradients(compiled: Any) -> None:
    """A complex singular vector has no phase of its own: torch looks whether the gradient depends on it."""
    matrix = torch.complex(torch.eye(3) * torch.arange(1.0, 4), torch.tril(torch.ones(3, 3))).requires_grad_()
    for weight in (torch.ones(3, 3), torch.full((3, 3), 1j)):

        def outcome(function: Any, weight: torch.Tensor = weight) -> Any:
            try:
                results = function(matrix)
                (grad,) = torch.autograd.grad(results, matrix, [torch.ones(3, 3), weight[0, 0] * results[1]])
            except RuntimeError as error:
                return str(error).splitlines()[0]
            return grad

        def program(m: torch.Tensor) -> Any:
            u, s, vh = torch.linalg.svd(m)
            return (u * u.conj()).real, u

        expected, found = outcome(program), outcome(compiled(program))
        if isinstance(expected, str):
            assert found == expected
        else:
            torch.testing.assert_close(found, expected, rtol=0, atol=0)


@pytest.mark.parametrize("index", [0, 1])
def test_where_both_answers_lead_on_the_program_is_refused(compiled: Any, index: int) -> None:
    """So too where another type is raised than a check raises, or only after something else has run."""

    def either(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if torch.equal(x, x.flip(0)) else x

    def other_type(x: torch.Tensor) -> torch.Tensor:
        if torch.equal(x, x.flip(0)):
            raise ValueError("alike")
        return x

    with pytest.raises(UnsupportedProgramError) as refusal:
        compiled((either, other_type)[index])(X)
    assert refusal.value.code == "AOT106"


def test_tensors_of_other_sizes_are_not_equal(compiled: Any) -> None:
    run = compiled(lambda x, y: x if torch.equal(x, y) else y)
    assert run(X, X[:2]) is not None
    torch.testing.assert_close(run(X, X[:2]), X[:2], rtol=0, atol=0)
    torch.testing.assert_close(run(X[:0], X[:0]), X[:0], rtol=0, atol=0)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_checks_run_on_the_cpu(device: str) -> None:
    """One that fails on a GPU ends the process, where eager raises."""
    spec = TensorSpec((), (), torch.bool, torch.device(device))

    class Called:
        def __init__(self) -> None:
            self.values: list[Any] = []

        def call(self, op: Any, args: Any, kwargs: Any = None) -> Any:
            self.values.append(op)
            place = spec.device if kwargs is None else kwargs["device"]
            return SimpleNamespace(spec=TensorSpec((), (), torch.bool, place), args=args)

    recorder: Any = Called()
    truth: Any = SimpleNamespace(spec=spec)
    Questions((Answer(True, "not equal"),)).ask(recorder, lambda: truth, UnsupportedProgramError("X", "y"))
    *before, check = recorder.values
    assert check is torch.ops.aten._assert_async.msg
    assert before == ([] if device == "cpu" else [torch.ops.aten._to_copy.default])
