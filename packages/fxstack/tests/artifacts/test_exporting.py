"""One graph with a contract, or the reason why there is none."""

from __future__ import annotations

import os
import re
import warnings

import pytest
import torch
from torch import nn

import fxstack
from fxstack import ExportError

X = torch.arange(24.0).reshape(3, 8)


def test_the_graph_can_be_read() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) + 1

    exported = fxstack.export(f, (X,), dynamic_shapes={"x": {0: "n"}})
    assert "relu" in str(exported)
    assert [item.name for item in exported.signature.inputs if item.kind.name == "USER"] == ["x"]


def refused(code: str, f: object, *args: object, **settings: object) -> ExportError:
    with pytest.raises(ExportError) as caught:
        fxstack.aot_compile(f, args, path=os.devnull, **settings)  # type: ignore[arg-type]
    assert caught.value.code == code
    assert caught.value.action
    return caught.value


def test_a_break_is_told_with_its_line_and_what_to_do() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x + 1
        return x - 1

    error = refused("FXS501", f, X)
    assert error.where is not None
    assert error.where.line == f.__code__.co_firstlineno + 1
    assert "CAP201" in str(error)
    assert "to do" in str(error)
    refused("FXS501", lambda x: 3, X)


def test_arguments_are_a_tuple() -> None:
    for args in (X, {"x": X}, "x", None):
        with pytest.raises(fxstack.ExportError, match=r"(?s)FXS502.*\(x,\)"):
            fxstack.export(lambda x: x + 1, args)  # type: ignore[arg-type]


def test_objects_must_not_change() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x + self.calls

    assert "the attribute calls of a Counting is set" in str(refused("FXS504", Counting(), X))
    found: list[torch.Tensor] = []

    def collects(x: torch.Tensor) -> torch.Tensor:
        found.append(x + 1)
        return x

    refused("FXS504", collects, X)


def test_what_is_set_and_set_back_is_no_change() -> None:
    class Flag(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.running = False

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.running = True
            y = x + self.running
            self.running = False
            return y

    fxstack.export(Flag(), (X,))


def test_calls_that_are_left_out_are_told() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        warnings.warn("computing", stacklevel=2)
        return x + 1

    with pytest.warns(UserWarning, match="not in the artifact: "):
        fxstack.export(f, (X,))


def test_arguments_and_results_of_other_kinds() -> None:
    class Own:
        pass

    assert "the argument x[0] is a Own" in str(refused("FXS502", lambda x: x[0], [Own()]))
    refused("FXS502", lambda x: x + 1, X.to_sparse())
    refused("FXS503", lambda x: (x + 1, Own), X)
    error = refused("FXS503", lambda x: (x + 1, x.shape[0]), X, dynamic_shapes={"x": {0: "n"}})
    assert "the result[1] is the number 3" in str(error)


def test_sizes_that_are_fixed_by_the_model() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.view(3, 4, 2) + 1

    with pytest.raises(ExportError, match=r"FXS506\] batch \(dimension 0 of x\) is fixed to 3"):
        fxstack.export(f, (X,), dynamic_shapes={"x": {0: "batch"}})


def test_an_export_has_a_short_name() -> None:
    model = torch.nn.Linear(X.shape[-1], 2)
    assert repr(fxstack.export(model, (X,))) == "<Exported Linear for inference: input>"


@pytest.mark.parametrize(
    "shapes, words",
    [
        ({"y": {0: "n"}}, "y is not an argument; there are x"),
        ({"x": {2: "n"}}, "x has 2 dimensions"),
        ({"x": {0: 5}}, "described by 5"),
        ({"x": "n"}, "needs a mapping"),
        ({"x": {0: fxstack.Dim("n", min=4)}}, "n is at least 4, and x in dimension 0 is 3"),
        ({"x": {0: fxstack.Dim("n", min=1)}}, "n has min=1, and a size that varies is at least 2"),
        ({"x": {0: fxstack.Dim("n", max=4), 1: fxstack.Dim("n")}}, "different bounds|at most 4"),
        ({"x": [{0: "n"}]}, "described by"),
    ],
)
def test_dynamic_shapes_must_fit(shapes: object, words: str) -> None:
    error = refused("FXS507", lambda x: x + 1, X, dynamic_shapes=shapes)
    assert error.code == "FXS507"
    assert re.search(words, str(error)), str(error)


def test_what_the_model_raises_passes() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fxstack.export(f, (X,))


def test_arguments_must_fit_the_signature() -> None:
    error = refused("FXS502", lambda x, y: x + y, X)
    assert "missing a required argument: 'y'" in str(error)


def test_what_torch_export_has_for_sizes() -> None:
    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y

    theirs = torch.export.Dim
    args = (torch.ones(4, 5, 1), torch.ones(4, 5, 1))
    described = {0: theirs("n", min=0, max=8), 1: theirs.DYNAMIC(max=9), 2: theirs.AUTO}
    found = fxstack.export(f, args, dynamic_shapes={"x": described, "y": {**described, 2: theirs.STATIC}})
    assert found.varying[0, 0] == found.varying[1, 0] == fxstack.Dim("n", max=8)
    assert found.varying[0, 1] == fxstack.Dim("x_1", max=9)
    assert found.varying.keys() == {(0, 0), (0, 1), (1, 0), (1, 1)}
    error = refused("FXS507", f, *args, dynamic_shapes={"x": {0: 2 * theirs("n")}})
    assert "use a name, a fxstack.Dim or None" in str(error)


def test_a_size_that_is_described_by_none_is_fixed() -> None:
    assert fxstack.export(lambda x: x + 1, (X,), dynamic_shapes={"x": {0: None}}).varying == {}


def test_bounds_of_a_dim_leave_a_size() -> None:
    with pytest.raises(ExportError, match="n is at least 5 and at most 3"):
        fxstack.Dim("n", min=5, max=3)
