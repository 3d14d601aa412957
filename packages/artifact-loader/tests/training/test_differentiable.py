"""A node of autograd's of two functions: ``(x * w, w.sum())``, without a native object."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fxstack_artifact import ContractError, GradientError
from fxstack_artifact.training.arriving import tangent
from fxstack_artifact.training.differentiable import Differentiable

W = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
DATA: dict[str, Any] = {
    "saved": [["leaf", 0], ["weight", 0], ["graph", 2]],
    "tangents": [
        {"result": 0, "dtype": "float32", "sizes": [[1, 0]], "strides": [[0, 1]]},
        {"result": 1, "dtype": "float32", "sizes": [], "strides": []},
    ],
    "gradients": [
        {"of": ["leaf", 0], "from": 0, "depends": [0]},
        {"of": ["weight", 0], "from": 1, "depends": [0, 1]},
    ],
    "unreached": [],
    "nan_from_zeros": [[1]],
    "linked": [],
    "returned": 2,
}


def made(constants: Any = (W,), **changes: Any) -> Differentiable:
    def forward(x: Any) -> Any:
        return x * constants[0], constants[0].sum(), x + 1

    def backward(n: int, x: Any, w: Any, kept: Any, first: Any, second: Any) -> Any:
        assert n == len(x)
        assert torch.equal(kept, x + 1)
        assert first.is_contiguous()
        return first * w, first * x + second

    names = [f"w{n}" for n in range(len(constants))]
    return Differentiable(
        DATA | changes, forward, backward, constants, ["x"], names, lambda leaves: [len(leaves[0])]
    )


def test_gradients_of_all_and_of_some() -> None:
    graph = made()
    x = torch.tensor([4.0, 5.0, 6.0], requires_grad=True)
    for use, of_x, of_w in (
        (lambda y, s: y.sum() + s, W.detach(), x.detach() + 1),
        (lambda y, s: y.sum(), W.detach(), x.detach()),
        (lambda y, s: s, None, torch.ones(3)),
    ):
        got = torch.autograd.grad(use(*graph(x)), [x, W], allow_unused=True)
        for gradient, want in zip(got, (of_x, of_w), strict=True):
            assert (gradient is None) if want is None else torch.equal(gradient, want)


def test_what_requires_grad() -> None:
    x = torch.ones(3)
    assert [result.requires_grad for result in made()(x)] == [True, True]
    frozen = torch.nn.Parameter(W.detach(), requires_grad=False)
    assert [result.requires_grad for result in made((frozen,))(x)] == [False, False]
    assert [r.requires_grad for r in made((frozen,))(x.requires_grad_())] == [True, False]
    with pytest.raises(ContractError, match=r"FXA308.*w1"):
        made((frozen, W))(x)


def test_refusals() -> None:
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(GradientError, match="FXA401"):
        made()(x)[1].backward(create_graph=True)
    with pytest.raises(GradientError, match="FXA403"):
        made()(x)[0].backward(torch.full((3,), float("nan")))
    result = made(linked=[[1, [0]]])(x)
    result[0].retain_grad()
    with pytest.raises(GradientError, match="FXA402"):
        result[1].backward()
    for wrong in (
        {"saved": [["file", 0]]},
        {"returned": 1},
        {"gradients": []},
        {"gradients": [{"of": ["graph", 0], "from": 0, "depends": []}]},
    ):
        with pytest.raises((ValueError, LookupError)):
            made(**wrong)


def test_an_index_that_leads_nowhere_is_found_when_it_is_made() -> None:
    for wrong in ({"saved": [["weight", 7]]}, {"saved": [["leaf", 7]]}, {"linked": [[1, [9]]]}):
        with pytest.raises((ValueError, LookupError)):
            made(**wrong)


def test_zeros_lie_where_the_result_does() -> None:
    read = tangent({"dtype": "float32", "sizes": [[1, 0]], "strides": [[0, 1]], "device": "meta"})
    assert read(None, [3]).device.type == "meta"
    assert read(torch.ones(6, device="meta")[::2], [3]).stride() == (1,)
    on_cpu = tangent({"dtype": "float32", "sizes": [[1, 0]], "strides": [[0, 1]]})
    assert torch.equal(on_cpu(None, [3]), torch.zeros(3))
