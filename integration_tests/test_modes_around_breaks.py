"""Graph breaks inside of blocks that set a mode: gradients, layouts and effects are eager's, through the whole stack.

What follows a break in ``torch.no_grad()`` is a graph that begins with gradients off and turns them on by itself; its
inputs have histories that they got before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fxstack
from fx_interface.conformance.outcomes import differences, observe, rounding


class _Network(nn.Module):
    """Two layers, with a body of statements between them."""

    def __init__(self, body: Callable[[nn.Module, nn.Module, Tensor], Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.body = body

    def forward(self, x: Tensor) -> Any:
        return self.body(self.first, self.second, self.first(x))


def _printing(a: nn.Module, b: nn.Module, h: Tensor) -> Any:
    with torch.no_grad():
        print(h.mean().item() > 100)
    return b(h)


def _switches(a: nn.Module, b: nn.Module, h: Tensor) -> Any:
    torch.set_grad_enabled(False)
    print(end="")
    torch.set_grad_enabled(True)
    return b(h)


@torch.no_grad()
def _without_gradients(t: Tensor) -> Tensor:
    print(t.sum().item() > 100)
    return t * 2


def _decorated(a: nn.Module, b: nn.Module, h: Tensor) -> Any:
    k = _without_gradients(h)
    return b(h), k, h * k


def _memory_taken(a: nn.Module, b: nn.Module, h: Tensor) -> Any:
    with torch.no_grad():
        other = torch.empty(0).set_(h)
        print(end="")
    return b(h) + other


def _written(a: nn.Module, b: nn.Module, h: Tensor) -> Any:
    with torch.no_grad():
        h.add_(1)
        print(end="")
        h.mul_(2)
    return b(h)


def _viewed(a: nn.Module, b: nn.Module, h: Tensor) -> Any:
    with torch.no_grad():
        one = h[0]
        print(end="")
        other = h[1]
    return b(h).sum() + one + other + h[0]


def _on_inside(a: nn.Module, b: nn.Module, h: Tensor) -> Any:
    with torch.no_grad():
        for _ in range(3):
            print(end="")
            with torch.enable_grad():
                h = b(h)
        k = h * 2
    return h, k


def _conjugated(a: nn.Module, b: nn.Module, h: Tensor) -> Any:
    c = torch.view_as_complex(h.view(-1, 2, 2)).conj()
    with torch.no_grad():
        print(end="")
    return (c * c).abs() + b(h).sum()


def _raised(a: nn.Module, b: nn.Module, h: Tensor) -> Any:
    try:
        with torch.no_grad():
            print(end="")
            raise ValueError(int(h.sum() > 1000))
    except ValueError:
        h = b(h)
    return h


_BODIES = [
    _printing, _switches, _decorated, _memory_taken, _written, _viewed, _on_inside, _conjugated, _raised,
]  # fmt: skip
_MANAGERS: dict[str, Callable[[], Any]] = {
    "no_grad": torch.no_grad,
    "enable_grad": torch.enable_grad,
    "inference_mode": torch.inference_mode,
    "no inference_mode": lambda: torch.inference_mode(False),
    "grad off": lambda: torch.set_grad_enabled(False),
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "device": lambda: torch.device("cpu"),
}


def _around(manager: Callable[[], Any]) -> Callable[..., Any]:
    def body(a: nn.Module, b: nn.Module, h: Tensor) -> Any:
        with manager():
            k = h * 2
            print(end="")
            q = b(k)
        return b(h), k, q

    return body


def _check(body: Callable[..., Any], backend: str) -> None:
    plain, fast = _Network(body), _Network(body)
    compiled = fxstack.compile(fast, backend=backend)
    values = rounding(1e-5, 1e-6) if backend == "inductor" else None
    for rows, trained in ((2, False), (3, False), (5, True)):
        x = torch.randn(rows, 4)
        one, two = (x.clone().requires_grad_(trained) for _ in range(2))
        expected = observe(plain, one, also={"module": plain})
        actual = observe(compiled, two, also={"module": fast})
        assert differences(expected, actual, values, ignore={"version", "own version"}) == []


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("body", _BODIES, ids=lambda body: body.__name__[1:])
def test_what_follows_a_break_has_its_gradients(body: Callable[..., Any], backend: str) -> None:
    _check(body, backend)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("manager", _MANAGERS)
def test_modes_around_a_break(manager: str, backend: str) -> None:
    _check(_around(_MANAGERS[manager]), backend)


def test_a_stored_program_knows_leaves_from_others(cache_dir: Any) -> None:
    """One graph, compiled first for a leaf and then for a result of another operation."""

    def function(x: Tensor) -> Tensor:
        torch._C._set_grad_enabled(True)
        return x.sin() * 2

    for make in (lambda w: w, lambda w: w * 1):
        weight = torch.ones(3, requires_grad=True)
        given = make(weight)
        fxstack.reset()
        with torch.no_grad():
            result = fxstack.compile(function)(given)
        with torch.enable_grad():
            result.sum().backward()
        torch.set_grad_enabled(True)
        torch.testing.assert_close(weight.grad, 2 * torch.ones(3).cos())
