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
