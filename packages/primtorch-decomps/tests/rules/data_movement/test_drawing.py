"""Specs of random permutations, integers and choices."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fx_interface.symbols import Relation, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps import LIBRARY
from primtorch_decomps.testing import check_open_spec, check_spec

CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("multinomial.default", (torch.rand(5), 3), {}),
    ("multinomial.default", (torch.rand(2, 5).double(), 7, True), {}),
    ("randperm.default", (5,), {}),
    ("randperm.default", (0,), {"dtype": torch.int32}),
    ("rand.generator", ([2, 4],), {"generator": None}),
    ("randn.generator", ([2, 4],), {"generator": None, "dtype": torch.float64}),
    ("randint.default", (3, [2, 4]), {}),
    ("randint.low", (-2, 3, [0, 4]), {"dtype": torch.float32}),
    ("bernoulli.default", (torch.rand(2, 3),), {"generator": None}),
    ("bernoulli.p", (torch.rand(2, 3), 0.5), {}),
    ("bernoulli.p", (torch.rand(2, 3),), {"p": 0.5, "generator": None}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), CASES)
def test_specs(name: str, args: Any, kwargs: Any) -> None:
    operator, overload = name.split(".")
    check_spec(getattr(getattr(torch.ops.aten, operator), overload), args, kwargs)


def test_sizes_stay_symbolic() -> None:
    env = ShapeEnv()
    n = env.create_symbol(6)
    weights = TensorSpec((n, 4), contiguous_strides((n, 4)), torch.float32, torch.device("cpu"))
    assert LIBRARY.infer(torch.ops.aten.multinomial.default, (weights, 2), {}, env).sizes == (n, 2)
    assert LIBRARY.infer(torch.ops.aten.randperm.default, (n,), {}, env).sizes == (n,)
    assert LIBRARY.infer(torch.ops.aten.randint.default, (9, [n, 2]), {}, env).sizes == (n, 2)
    for name in ("rand", "randn"):
        operator = getattr(torch.ops.aten, name).generator
        assert LIBRARY.infer(operator, ([n, 2],), {"generator": None}, env).sizes == (n, 2)
    assert env.simplify(n) == n


def test_what_torch_refuses_it_refuses() -> None:
    weights = TensorSpec((3,), (1,), torch.float32, torch.device("cpu"))
    with pytest.raises(RuntimeError, match="without replacement"):
        LIBRARY.infer(torch.ops.aten.multinomial.default, (weights, 4), {}, ShapeEnv())
    with pytest.raises(RuntimeError):
        LIBRARY.infer(torch.ops.aten.randint.low, (3, 3, [2]), {}, ShapeEnv())


def test_draws_of_any_size() -> None:
    x = torch.rand(4, 5).t()
    for name, args in (("cauchy", ()), ("geometric", (0.5,)), ("log_normal", ())):
        check_open_spec(f"aten.{name}.default", x, *args)
    check_open_spec("aten.normal.Tensor_Tensor", x, x[0])
    check_open_spec("aten.normal.Tensor_float", x, 1.0)
    check_open_spec("aten.normal.float_Tensor", 1.0, x)
    check_open_spec("aten.normal.float_float", 0.0, 1.0, [3, 4], dtype=torch.float64)


def test_drawn_slopes_of_any_size() -> None:
    for x in (torch.rand(4, 5).t(), torch.rand(4, 10)[:, ::2]):
        noise = torch.rand(x.shape)
        for training in (True, False):
            check_open_spec("aten.rrelu_with_noise.default", x, noise, 0.1, 0.3, training)
            check_open_spec("aten.rrelu_with_noise_functional.default", x, noise, 0.1, 0.3, training)
        noise = torch.rand(x.shape).mT.contiguous().mT
        args = (torch.rand(x.shape), x, noise, 0.1, 0.3, True, False)
        check_open_spec("aten.rrelu_with_noise_backward.default", *args)


@pytest.mark.parametrize(
    ("name", "tensors"),
    [("poisson", 1), ("binomial", 2), ("_standard_gamma", 1), ("_standard_gamma_grad", 2),
     ("_sample_dirichlet", 1), ("_dirichlet_grad", 3)],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_samples_and_derivatives_of_distributions(name: str, tensors: int, dtype: torch.dtype) -> None:
    x = torch.rand(4, 5, dtype=dtype)
    for given in (x, x.t(), x[:, :1].expand(4, 3), x[0], x[0, 0], x[:0]):
        check_spec(getattr(torch.ops.aten, name).default, (given,) * tensors, {})
    check_open_spec(f"aten.{name}.default", x.t(), *(x.t(),) * (tensors - 1))


def test_parameters_of_other_sizes_are_tried() -> None:
    specs = [TensorSpec((3,), (1,), kind, torch.device("cpu")) for kind in (torch.float32, torch.float64)]
    with pytest.raises(RuntimeError):
        LIBRARY.infer(torch.ops.aten.binomial.default, tuple(specs), {}, ShapeEnv())


def test_numbers_from_data_are_expected_to_leave_a_choice() -> None:
    """The kernel raises where there is none."""
    env = ShapeEnv()
    most = env.create_symbol(None, low=0, high=8)
    found = LIBRARY.infer(torch.ops.aten.randint.low, (0, 5 - most, [2]), {}, env)
    assert found.sizes == (2,)
    assert env.expected == [Relation("<=", 1, 5 - most)]
    assert LIBRARY.infer(torch.ops.aten.randperm.default, (most,), {}, env).sizes == (most,)
