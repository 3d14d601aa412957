from __future__ import annotations

import pytest
import torch

import fxstack


def _breaks(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    if y.sum() > 0:
        return y + 1.0
    return y - 1.0


def test_graphs_breaks_and_guards_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    x = torch.ones(3)
    told = fxstack.explain(_breaks)(x)
    assert len(told.graphs) == 2
    (stop,) = told.breaks
    assert stop.code == "CAP201"
    assert stop.where is not None
    assert stop.where.line == _breaks.__code__.co_firstlineno + 2
    assert stop.advice in str(told)
    assert any(guard.startswith("x: ") for guard in told.guards[0])
    torch.testing.assert_close(told.result, _breaks(x))
    assert capsys.readouterr().out == ""  # who asks prints it


def test_one_graph_and_no_break() -> None:
    told = fxstack.explain(lambda x: x.sin() + 1.0)(torch.ones(3))
    assert (len(told.graphs), told.breaks) == (1, ())
    assert "sin" in str(told)


def test_before_the_call_it_says_that_nothing_was_run() -> None:
    assert "call fxstack.explain(function) with" in str(fxstack.explain(_breaks))


def test_the_functions_own_exception_passes() -> None:
    def raises(x: torch.Tensor) -> torch.Tensor:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fxstack.explain(raises)(torch.ones(3))


def test_a_compiled_function_is_explained_as_its_original() -> None:
    compiled = fxstack.compile(_breaks, backend="eager")
    assert len(fxstack.explain(compiled)(torch.ones(3)).breaks) == 1


def test_the_function_and_its_arguments_in_one_call() -> None:
    def scaled(x: torch.Tensor, factor: float = 1.0) -> torch.Tensor:
        return x * factor

    x = torch.ones(3)
    assert str(fxstack.explain(scaled, x, factor=2.0)) == str(fxstack.explain(scaled)(x, factor=2.0))
    assert len(fxstack.explain(scaled, x).graphs) == 1
    assert torch.equal(fxstack.explain(scaled, x=x, factor=3.0).result, x * 3)  # type: ignore[call-overload]


def test_what_cannot_be_called_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="5 is no function, module or other callable"):
        fxstack.explain(5)  # type: ignore[call-overload]


def test_no_object_of_ours_in_what_is_said_of_guards() -> None:
    """Two arguments that are one tensor: both are named, and what is relied on of them."""

    class Added(torch.nn.Module):
        def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
            return first + second

    x = torch.ones(3)
    told = fxstack.explain(Added(), x, x).details()
    assert "second, first: same_object" in told
    assert "fx_interface" not in told
    assert "args[" not in told
