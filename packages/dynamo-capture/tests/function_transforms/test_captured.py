from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.func import functional_call, functionalize, grad, hessian, jacrev, jvp, vjp, vmap

from dynamo_capture import CaptureError, optimize, run_graph
from fx_guards import torch_bridge

_WEIGHT = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
_MEAN = torch.zeros(3)
_SHAPES: list[Any] = []


def _total(f: Callable[..., Any]) -> Callable[..., Any]:
    def scalar(*args: Any) -> torch.Tensor:
        found: torch.Tensor = f(*args)
        return found.sum()

    return scalar


_OF_A_ROW: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: grad(_total(f)),
    "vjp": lambda f: lambda x: vjp(_total(f), x)[1](torch.tensor(2.0)),
    "jvp": lambda f: lambda x: jvp(f, (x,), (x + 1,)),
    "grad of grad": lambda f: grad(_total(grad(_total(f)))),
    "hessian": lambda f: hessian(_total(f)),
    "jacrev": jacrev,
    "functionalize": functionalize,
    "grad of functionalize": lambda f: grad(functionalize(_total(f))),
}
_OF_ROWS: dict[str, Callable[[Any], Any]] = {
    "vmap": lambda f: vmap(f, randomness="different"),
    "vmap of columns": lambda f: vmap(f, in_dims=1, randomness="same"),
    "vmap of grad": lambda f: vmap(grad(_total(f)), randomness="different"),
    "grad of vmap": lambda f: grad(_total(vmap(f, randomness="different"))),
}
_TRANSFORMS = _OF_A_ROW | _OF_ROWS


def _ordinary(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * _WEIGHT + x.shape[0]


def _without_gradients(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        scale = x * 2
    return scale * x * x.detach()


def _drawn(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.dropout(x, 0.5) * x


def _counted(x: torch.Tensor) -> torch.Tensor:
    _SHAPES.append(tuple(x.shape))
    return x * x * x


def _given_back(x: torch.Tensor) -> torch.Tensor:
    return x.view(3, 1).squeeze()


def _transformed_inside(x: torch.Tensor) -> torch.Tensor:
    return vmap(lambda y: y * y)(x)


def _asked_of_an_input(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.requires_grad else x * 3


def _written(x: torch.Tensor) -> torch.Tensor:
    return torch.zeros(3).add(x).mul_(x)


_CAPTURED = [
    _ordinary,
    _without_gradients,
    _drawn,
    _counted,
    _given_back,
    _transformed_inside,
    _asked_of_an_input,
    _written,
]


def _asked_of_a_result(x: torch.Tensor) -> torch.Tensor:
    y = x * _WEIGHT
    return y * 2 if y.requires_grad else y * 3


def _written_to_a_leaf(x: torch.Tensor) -> torch.Tensor:
    try:
        _WEIGHT.add_(1)
    except RuntimeError:
        return x * 5
    return x


def _number(x: torch.Tensor) -> torch.Tensor:
    return x * x.sum().item()


def _branch(x: torch.Tensor) -> torch.Tensor:
    return x if x.sum() > 0 else -x


def _rows_from_data(x: torch.Tensor) -> torch.Tensor:
    return x * x[x > 0].shape[0]


def _asked_for_gradients(x: torch.Tensor) -> torch.Tensor:
    return torch.ones(3).requires_grad_() * x


def _hooked(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    if y.requires_grad:
        y.register_hook(lambda gradient: gradient * 3)
    return y * 1


class _Sevenfold(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return gradient * 7


def _of_its_own_rule(x: torch.Tensor) -> Any:
    return _Sevenfold.apply(x) * _WEIGHT  # type: ignore[no-untyped-call]


_LEFT = [
    _asked_of_a_result,
    _written_to_a_leaf,
    _number,
    _branch,
    _rows_from_data,
    _asked_for_gradients,
    _hooked,
    _of_its_own_rule,
]


def _observed(transform: str, function: Any) -> Any:
    """Results or exception, effects, and how the random state is left."""
    torch.manual_seed(0)
    _SHAPES.clear()
    x = torch.linspace(-1, 2, 3) if transform in _OF_A_ROW else torch.linspace(-1, 2, 9).reshape(3, 3)
    try:
        found: Any = _TRANSFORMS[transform](function)(x)
    except RuntimeError as error:
        found = str(error)
    return found, x, list(_SHAPES), torch.get_rng_state()


def _check_equal(found: Any, expected: Any) -> None:
    if isinstance(expected, torch.Tensor):
        assert torch.equal(found, expected)
        assert found.stride() == expected.stride()
        assert found.requires_grad == expected.requires_grad
    elif isinstance(expected, (tuple, list)):
        for part, wanted in zip(found, expected, strict=True):
            _check_equal(part, wanted)
    else:
        assert found == expected


@pytest.mark.parametrize("transform", _TRANSFORMS)
def test_what_is_captured(transform: str) -> None:
    for function in _CAPTURED:
        optimizer = optimize(run_graph, fullgraph=True)
        compiled = optimizer(function)
        expected = _observed(transform, function)
        for _ in range(2):
            _check_equal(_observed(transform, compiled), expected)
        assert optimizer.report.replacements or isinstance(expected[0], str)
        assert not optimizer.report.eager


@pytest.mark.parametrize("transform", _TRANSFORMS)
def test_what_is_left(transform: str) -> None:
    for function in _LEFT:
        compiled = optimize(run_graph)(function)
        expected = _observed(transform, function)
        for _ in range(2):
            _check_equal(_observed(transform, compiled), expected)


@pytest.mark.parametrize("function", [_number, _branch, _of_its_own_rule])
def test_one_graph_is_refused_where_there_is_none(function: Any) -> None:
    with pytest.raises(CaptureError):
        grad(_total(optimize(run_graph, fullgraph=True)(function)))(torch.ones(3))


def test_each_stack_has_a_version_of_its_own() -> None:
    optimizer = optimize(run_graph, fullgraph=True)
    compiled = optimizer(_ordinary)
    rows = torch.ones(3, 3)
    for count, call in enumerate(
        [
            lambda: compiled(rows[0]),
            lambda: vmap(compiled)(rows),
            lambda: vmap(compiled, in_dims=1)(torch.ones(3, 7)),  # as the one before, with other strides
            lambda: vmap(compiled, randomness="same")(rows),
            lambda: vmap(vmap(compiled))(torch.ones(2, 3, 3)),
        ],
        1,
    ):
        for _ in range(2):
            call()
        assert len(optimizer.report.replacements) == count


def test_the_level_of_an_input_is_guarded() -> None:
    """The same class, sizes and number of levels: what requires grad, and at which of them, is another matter."""

    def program(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.requires_grad else x * 3

    compiled = optimize(run_graph, fullgraph=True)(program)

    def nested(f: Any, inner: bool) -> Any:
        return grad(lambda x: grad(lambda y: f(y if inner else x).sum() + (y * x).sum())(x).sum())(
            torch.ones(3)
        )

    for inner in (True, False, True):
        _check_equal(nested(compiled, inner), nested(program, inner))


def test_modules_called_with_other_parameters() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    optimizer = optimize(run_graph, fullgraph=True)
    compiled = optimizer(module)
    rows = torch.randn(5, 3)

    def gradients(called: Any) -> Any:
        def loss(parameters: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = functional_call(called, parameters, (x,))
            return found.sum()

        found: Any = vmap(grad(loss), in_dims=(None, 0))(dict(module.named_parameters()), rows)
        return list(found.values())

    _check_equal(gradients(compiled), gradients(module))
    assert len(optimizer.report.replacements) == 1


def test_the_layout_of_tensors_is_measured_outside_of_the_transforms() -> None:
    """The first guard of a process may be built inside of one, where no tensor may be asked to require grad."""
    found = vmap(lambda x: x if torch_bridge.calibration.__wrapped__() is not None else x * 0)(torch.ones(2))
    assert found.tolist() == [1, 1]
