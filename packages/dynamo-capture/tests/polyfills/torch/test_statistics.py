"""Covariances and correlations are one graph, and eager's to the rounding."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dynamo_capture import optimize


def run(graph: torch.fx.GraphModule, inputs: Any) -> Any:
    return graph.forward


PROGRAMS: dict[str, Any] = {
    "cov": lambda x: torch.cov(x),
    "cov of all": lambda x: x.cov(correction=0),
    "corrcoef": lambda x: torch.corrcoef(x),
    "method": lambda x: x.corrcoef(),
}
INPUTS = {
    "rows": torch.randn(3, 5),
    "one row": torch.randn(5),
    "integers": torch.randint(0, 9, (3, 4)),
    "complex": torch.randn(2, 4, dtype=torch.complex64),
}


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_statistics_are_one_graph(name: str, kind: str) -> None:
    function, x = PROGRAMS[name], INPUTS[kind]
    expected, found = function(x), optimize(run, fullgraph=True)(function)(x)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert found.stride() == expected.stride()


def test_what_torch_warns_of_is_left_to_it() -> None:
    with pytest.warns(UserWarning, match="degrees of freedom"):
        optimize(run)(lambda x: torch.cov(x))(torch.randn(3, 1))


@pytest.mark.parametrize("share", [-0.5, 1.5, float("nan")])
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_shares_outside_are_refused(name: str, share: float) -> None:
    """Torch checks them only where no mode sees the operators."""
    x, q = torch.randn(4), torch.tensor([0.5, share])
    for program in (lambda x, q: getattr(torch, name)(x, q), lambda x, q: getattr(x, name)(q)):
        with pytest.raises(RuntimeError) as expected:
            program(x, q)
        with pytest.raises(RuntimeError) as found:
            optimize(run)(program)(x, q)
        assert str(found.value) == str(expected.value)
