"""``FXSTACK_CHECK=1``: what differs is reported and not used; what is right is used, and nobody notices the check."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fxstack

sys.path.insert(0, str(Path(__file__).parent))
import wrong_backends

CHECK = {"check": True}


@pytest.fixture(autouse=True)
def _fresh() -> None:
    fxstack.reset()
    torch.manual_seed(0)


@contextlib.contextmanager
def no_report() -> Iterator[None]:
    """Nothing inside may be reported. (An exception would not do: capture runs a graph that raises in eager.)"""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        yield
    assert not [one for one in heard if issubclass(one.category, fxstack.CheckWarning)], str(heard[0].message)


def several(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """A result, a view of an input, another result, and a write."""
    z = torch.tanh(x) * 2
    y.add_(1)
    return z, y[0], torch.sigmoid(x)


def arguments() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(2, 2, generator=generator).requires_grad_()
    return x, torch.randn(2, 2, generator=generator)


@pytest.mark.parametrize("what", sorted(wrong_backends.WRONG))
def test_a_wrong_backend_is_caught_and_not_used(what: str, caplog: pytest.LogCaptureFixture) -> None:
    backend, report = wrong_backends.WRONG[what]
    compiled = fxstack.compile(several, backend=backend, options=CHECK)
    x, y = arguments()
    with pytest.warns(fxstack.CheckWarning, match="FXS401") as heard:
        results = compiled(x, y)
    assert report in str(heard[0].message)
    assert "test_backend.py" in str(heard[0].message)
    assert "FXS401" in caplog.text
    sum(result.sum() for result in results).backward()
    expected_x, expected_y = arguments()
    expected = several(expected_x, expected_y)
    sum(result.sum() for result in expected).backward()  # type: ignore[union-attr]
    assert all(map(torch.equal, results, expected))
    assert torch.equal(y, expected_y)
    assert x.grad is not None
    assert torch.equal(x.grad, expected_x.grad)


def test_an_exception_that_eager_raises_is_missed() -> None:
    compiled = fxstack.compile(lambda x, i: x[i], backend=wrong_backends.forgiving, options=CHECK)
    with pytest.raises(IndexError), pytest.warns(fxstack.CheckWarning, match="nothing instead of IndexError"):
        compiled(torch.ones(2, 2), torch.tensor([5, 0]))


def test_later_calls_are_eager_s_too_and_are_not_reported_again() -> None:
    compiled = fxstack.compile(
        torch.nn.functional.gelu, backend=wrong_backends.one_percent_off, options=CHECK
    )
    x = torch.ones(3)
    with pytest.warns(fxstack.CheckWarning):
        compiled(x)
    with no_report():
        assert torch.equal(compiled(x + 1), nn.functional.gelu(x + 1))


def test_a_backend_that_changes_its_graph_is_compared_with_the_graph_as_captured() -> None:
    compiled = fxstack.compile(lambda x: torch.tanh(x), backend=wrong_backends.changing, options=CHECK)
    x = torch.ones(3)
    with pytest.warns(fxstack.CheckWarning):
        assert torch.equal(compiled(x), torch.tanh(x))


def test_what_promises_to_leave_nothing_behind_keeps_the_promise_in_eager() -> None:
    def function(x: Tensor, i: Tensor) -> Tensor:
        x.add_(1)
        return x[i]

    compiled = fxstack.compile(function, backend=wrong_backends.without_trace, options=CHECK)
    x = torch.zeros(3)
    with pytest.warns(fxstack.CheckWarning):
        compiled(x, torch.tensor([0]))
    with pytest.raises(IndexError):
        compiled(x, torch.tensor([7]))
    assert torch.equal(x, torch.full((3,), 2.0))  # once for each call, as in eager


def branches(x: Tensor) -> Tensor:
    return torch.where(x > 0, x.exp(), x)


@pytest.mark.nightly
def test_the_script_shows_the_difference_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = fxstack.compile(branches, backend=wrong_backends.one_percent_off, options=CHECK)
    x = torch.randn(4, 4)[:, ::2].requires_grad_()
    with pytest.warns(fxstack.CheckWarning) as heard:
        compiled(x)
    found = re.search(r"python (\S+\.py)", str(heard[0].message))
    assert found is not None
    script = Path(found[1])
    assert "pickle" not in script.read_text()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        [sys.executable, str(script)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "FXS401" in done.stdout
    assert "first operator that differs: " in done.stdout
    right = script.read_text().replace("backend=one_percent_off", 'backend="eager"')
    script.write_text(right)
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_environment_switches_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FXSTACK_CHECK", "1")
    compiled = fxstack.compile(branches, backend=wrong_backends.one_percent_off)
    with pytest.warns(fxstack.CheckWarning):
        compiled(torch.ones(2))
    fxstack.reset()
    off = fxstack.compile(branches, backend=wrong_backends.one_percent_off, options={"check": False})
    with no_report():
        off(torch.ones(2))


def test_verify_is_not_helped_by_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FXSTACK_CHECK", "1")
    assert not fxstack.verify(branches, backend=wrong_backends.one_percent_off)(torch.ones(2)).ok


class Effects(nn.Module):
    """Has effects of many kinds: hooks, a buffer, random numbers, prints, gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.log: list[str] = []
        self.linear.weight.register_hook(lambda grad: self.log.append("hook"))
        self.register_forward_hook(lambda *_: self.log.append("forward"))

    def forward(self, x: Tensor) -> Tensor:
        self.log.append("called")
        y = nn.functional.dropout(self.norm(self.linear(x)), 0.5)
        self.log.append("broke")
        print("once")
        x.mul_(2)
        return y + torch.rand_like(y)


def _note(saved: list[Tensor], tensor: Tensor) -> Tensor:
    saved.append(tensor)
    return tensor


def _same(tensor: Tensor) -> Tensor:
    return tensor


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_nobody_notices_the_check(backend: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = []
    for options in ({"check": False}, CHECK):
        fxstack.reset()
        torch.manual_seed(5)
        model = Effects()
        compiled = fxstack.compile(model, backend=backend, options={**options, "cache_dir": tmp_path})
        saved: list[Tensor] = []
        hooks = torch.autograd.graph.saved_tensors_hooks(functools.partial(_note, saved), _same)
        for rows in (3, 5):
            x = torch.randn(rows, 4)
            with (
                no_report(),
                hooks,
            ):
                result = compiled(x)
            result.sum().backward()
            outcomes.append((result.detach(), x, x._version, torch.get_rng_state()))
        state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        grads = [p.grad for p in model.parameters()]
        outcomes.append((model.log, len(saved), capsys.readouterr().out, *state.values(), *grads))
    half = len(outcomes) // 2
    for off, on in zip(outcomes[:half], outcomes[half:], strict=True):
        for one, other in zip(off, on, strict=True):
            same = torch.equal(one, other) if isinstance(one, Tensor) else one == other
            assert same, (one, other)


def uninitialized(x: Tensor) -> tuple[Tensor, Tensor]:
    made = torch.empty(3, 4)
    made[0] = x[0]
    return made, x * 2


def cases() -> dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]]:
    """Right programs that a careless check would report."""
    w = torch.randn(4, 4)

    def overlapping() -> tuple[Tensor, Tensor]:
        base = torch.arange(12.0)
        return base[2:8], base[4:10]

    def computed() -> tuple[Tensor]:
        return (torch.randn(3, 4, requires_grad=True) * 2,)

    def view_of_computed() -> tuple[Tensor]:
        return ((torch.randn(4, 3, requires_grad=True) * 2).t(),)

    def complex_numbers() -> tuple[Tensor]:
        return (torch.randn(3, 4, dtype=torch.complex64, requires_grad=True),)

    return {
        "uninitialized memory": (uninitialized, lambda: (torch.randn(3, 4),)),
        "NaN and infinities": (lambda x: (x.log(), 1 / x), lambda: (torch.tensor([-1.0, 0.0, 1.0, -0.0]),)),
        "overlapping views": (lambda a, b: (a * b).cumsum(0), overlapping),
        "in place on a computed tensor": (lambda x: x.mul_(3).sum(), computed),
        "a view of a computed tensor": (lambda x: (x @ w).relu(), view_of_computed),
        "half precision": (
            lambda x: torch.softmax(x.bfloat16() @ w.bfloat16(), -1),
            lambda: (torch.randn(3, 4),),
        ),
        "complex numbers": (lambda x: (x * x.conj()).sum(0), complex_numbers),
        "conjugated input": (lambda x: x * 2, lambda: (torch.randn(4, dtype=torch.complex64).conj(),)),
        "no results with a gradient": (lambda x: x.argmax(-1), computed),
        "an input is a result": (lambda x: (x, x.view(-1), x + 1), lambda: (torch.randn(3, 4),)),
        "not used": (lambda x, y: x * 2, lambda: (*computed(), *computed())),
        "numbers": (lambda x, n: x * n + n, lambda: (torch.randn(3), 2.5)),
        "attention": (
            lambda q: nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.1),
            lambda: (torch.randn(1, 2, 5, 8, requires_grad=True),),
        ),
    }


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", sorted(cases()))
def test_a_right_program_is_not_reported(name: str, backend: str, tmp_path: Path) -> None:
    function, inputs = cases()[name]
    compiled = fxstack.compile(function, backend=backend, options={**CHECK, "cache_dir": tmp_path})
    with no_report():
        compiled(*inputs())


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_modes_that_are_on(backend: str, tmp_path: Path) -> None:
    function = nn.Linear(4, 4)
    for mode in (torch.no_grad(), torch.inference_mode(), torch.autocast("cpu"), torch.device("cpu")):
        fxstack.reset()
        compiled = fxstack.compile(function, backend=backend, options={**CHECK, "cache_dir": tmp_path})
        with mode, no_report():
            compiled(torch.randn(2, 4))


@torch.library.custom_op("checking_tests::noted", mutates_args=())
def noted(x: Tensor) -> Tensor:
    CALLS.append(1)
    return x.clone()


@noted.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


CALLS: list[int] = []


def test_a_custom_operator_s_effects_happen_once(caplog: pytest.LogCaptureFixture) -> None:
    compiled = fxstack.compile(lambda x: noted(x) + 1, backend="aot_eager", options=CHECK)
    with caplog.at_level(logging.INFO, "fxstack"):
        before = len(CALLS)
        compiled(torch.ones(2))
    assert len(CALLS) == before + 1
    assert "FXS402" in caplog.text


def test_roundings_of_float64_are_no_difference() -> None:
    """Of ``1 - tanh(x) ** 2`` that cancels, a last place of the hyperbolic tangent is all that is seen."""
    attention = nn.MultiheadAttention(8, 2, batch_first=True).double()
    x = torch.tensor(3.7, dtype=torch.float64, requires_grad=True)
    query, key = (torch.randn(2, 3, 8, dtype=torch.float64, requires_grad=True) for _ in range(2))
    with no_report():
        fxstack.compile(torch.tanh, options=CHECK)(x)
        fxstack.compile(lambda q, k: attention(q, k, k)[0], options=CHECK)(query, key)


def test_an_error_of_float64_is_found() -> None:
    def nearly(graph_module: Any, example_inputs: Any) -> Any:
        return lambda *inputs: [result * (1 + 1e-13) for result in graph_module.forward(*inputs)]

    compiled = fxstack.compile(lambda x: x.sin() + 2, backend=nearly, options=CHECK)
    with pytest.warns(fxstack.CheckWarning, match="FXS401"):
        compiled(torch.randn(8, dtype=torch.float64))
