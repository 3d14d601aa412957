"""Writing through every kind of view gives what eager gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from aot_autograd.views.memory import elements_share_memory
from aot_autograd.views.views import INVERSES, is_view
from fx_interface.errors import UnsupportedProgramError
from fx_interface.symbols import IntLike, Relation, ShapeEnv
from fx_interface.tensor_spec import TensorSpec

aten = torch.ops.aten

VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "view": lambda x: x.view(12, 2),
    "flatten": lambda x: x.flatten(),
    "t": lambda x: x[0].t(),
    "permute": lambda x: x.permute(2, 0, 1),
    "negative_permute": lambda x: x.permute(-1, 0, -2),
    "transpose": lambda x: x.transpose(0, -1),
    "unsqueeze": lambda x: x.unsqueeze(-1),
    "squeeze": lambda x: x[:, :1, :1].squeeze(),
    "squeeze_dim": lambda x: x[:, :1].squeeze(1),
    "squeeze_dims": lambda x: x[:, :1, :1].squeeze((1, -1)),
    "select": lambda x: x.select(1, -1),
    "slice": lambda x: x[:, 1:, ::2],
    "diagonal": lambda x: x.diagonal(1, 1, 2),
    "as_strided": lambda x: x.as_strided((2, 2), (4, 1)),
    "split": lambda x: x.split(2, 2)[1],
    "split_with_sizes": lambda x: x.split([1, 3], -1)[1],
    "chunk": lambda x: x.chunk(2, -1)[1],
    "unbind": lambda x: x.unbind(1)[2],
    "view_dtype": lambda x: x.view(torch.int64),
    "view_as_complex": lambda x: torch.view_as_complex(x.view(2, 3, 2, 2)),
    "expand": lambda x: x.expand(2, 3, 4),
    "expand_more": lambda x: x.expand(1, 2, 3, 4),
    "detach": lambda x: x.detach(),
    "narrow": lambda x: x.narrow(2, 1, 2),
    "movedim": lambda x: x.movedim(0, -1),
    "chained": lambda x: x[1].t()[:, 1:].unsqueeze(0).flatten()[::2],
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_write_through_a_view_reaches_the_base(name: str, check: Any) -> None:
    def function(x: torch.Tensor) -> Any:
        base = x * 1
        view = VIEWS[name](base)
        view.mul_(3)
        return base, view * 2

    check(function, torch.arange(24, dtype=torch.float64).reshape(2, 3, 4))


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_shows_writes_to_its_base(name: str, check: Any) -> None:
    def function(x: torch.Tensor) -> Any:
        base = x * 1
        view = VIEWS[name](base)
        base.add_(1)
        return view * 2

    check(function, torch.arange(24, dtype=torch.float64).reshape(2, 3, 4))


def test_overlapping_writes_are_refused(compiled: Any) -> None:
    with pytest.raises(UnsupportedProgramError, match="AOT104"):
        compiled(lambda x: (x * 1).expand(2, 3).add_(1))(torch.ones(3))


def test_every_inverse_is_of_a_view() -> None:
    assert all(is_view(op) for op in INVERSES)
    assert not is_view(aten.add.Tensor)
    assert not is_view(aten.add_.Tensor)


def test_conjugates_are_computed_where_they_are_used(check: Any) -> None:
    x = torch.randn(3, 2, dtype=torch.complex128)
    check(lambda x: torch.view_as_real(x.conj().resolve_conj()), x)
    check(lambda x: x.conj().resolve_conj().add_(1), x)
    check(lambda x: (x.conj().imag * 2, x.conj().t(), x.conj().real), x)
    check(lambda x: torch.view_as_real(torch.zeros_like(x).copy_(x.conj())), x)
    check(lambda x: x.conj() @ x.mH, torch.randn(3, 3, dtype=torch.complex128, requires_grad=True))

    def written(x: torch.Tensor) -> torch.Tensor:
        y = x * 1
        y.conj()[0] = 1 + 2j
        return y

    check(written, x)


def test_chunks_that_are_promised_not_to_be_used_as_views_have_memory_of_their_own(check: Any) -> None:
    """As in LSTM cells, which write to the chunks of a tensor that nobody reads again."""

    def gates(x: torch.Tensor) -> torch.Tensor:
        first, second = (x * 2).unsafe_chunk(2)
        return first.sigmoid_() * second.tanh_()

    check(gates, torch.randn(4, 3, dtype=torch.float64, requires_grad=True))
    check(gates, torch.randn(4, 3, dtype=torch.float64))


@pytest.mark.parametrize(
    "function", [lambda x: x * 1j, lambda x: (2 - 3j) / x, lambda x: (x + 1j) * (1 + 2j)]
)
def test_numbers_that_derivatives_conjugate(function: Any, check: Any) -> None:
    """Torch's formulas view a number as a tensor; what is viewed arrives as a Python number."""
    check(lambda x: torch.view_as_real(function(x)), torch.randn(3, dtype=torch.float64, requires_grad=True))


def test_elements_that_share_memory() -> None:
    def share(sizes: tuple[IntLike, ...], strides: tuple[IntLike, ...]) -> bool:
        return elements_share_memory(TensorSpec(sizes, strides, torch.float32, torch.device("cpu")), env)

    env = ShapeEnv()
    assert share((3, 2), (1, 1))
    assert share((3,), (0,))
    assert share((3, 4), (3, 2))  # 6 twice
    assert not share((2, 3), (3, 2))  # 0 2 4 and 3 5 7
    assert not share((1, 3), (0, 2))
    assert not share((0, 3), (1, 1))
    n, wide = env.create_symbol(5), env.create_symbol(9)
    assert not share((n, n), (2 * n, 2))
    assert not share((n, n), (1, n))
    assert share((n, 4), (1, 1))
    assert env.known(Relation("<=", n, wide)) is None
    assert not share((4, n), (wide, 1))
    assert env.known(Relation("<=", n, wide)) is True  # has become a guard


REFUSED_WRITES: dict[str, Callable[[torch.Tensor], Any]] = {
    "elements over elements": lambda x: x.as_strided((3, 2), (1, 1)).mul_(2),
    "over a part of what is read": lambda x: x[1:].copy_(x[:-1]),
    "over what is read in another order": lambda x: x[:4].view(2, 2).add_(x[:4].view(2, 2).t()),
    "a result that the dtype cannot hold": lambda x: x.long().mul_(2.5),
}


@pytest.mark.parametrize("name", REFUSED_WRITES)
def test_writes_that_are_left_to_eager(name: str, compiled: Any) -> None:
    with pytest.raises(UnsupportedProgramError):
        compiled(REFUSED_WRITES[name])(torch.arange(6.0))


def test_writes_beside_what_is_read(check: Any) -> None:
    check(lambda x: (x[:3].add_(x[3:]), x[3:].copy_(x[:3]), x.mul_(x)), torch.arange(6.0))


def test_strides_of_single_elements_stay(check: Any) -> None:
    """They decide the layouts of what is computed from the tensor: channels-last images of one point each."""

    def function(x: torch.Tensor) -> Any:
        image = torch.empty_strided((2, 16, 1, 1), (16, 1, 16, 16))
        image.copy_(x)
        image.relu_()
        grown = torch.nn.functional.interpolate(image, size=(2, 2))
        again = image.view(2, 16).view(2, 16, 1, 1)
        return image, grown, again, torch.nn.functional.interpolate(again, size=(2, 2))

    check(function, torch.randn(2, 1, 1, 16).permute(0, 3, 1, 2))
