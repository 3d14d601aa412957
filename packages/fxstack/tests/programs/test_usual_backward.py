"""Backwards without the gradients of what stands beside a loss, and with them where they arrive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fxstack
import inductor_codegen
from aot_autograd.runtime.gradients.partial_backward import PartialBackward
from inductor_codegen.native_errors import MissingCompilerError

Use = Callable[[tuple[Tensor, Tensor, Tensor]], Tensor]


class Model(nn.Module):
    """A loss, what it was computed from, and what that was computed from."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(50, 16), nn.LayerNorm(16)
        self.head = nn.Linear(16, 50, bias=False)

    def forward(self, tokens: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        hidden = self.norm(self.embedding(tokens))
        logits = self.head(hidden)
        return nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits, hidden


USES: dict[str, Use] = {
    "loss": lambda results: results[0] * 3,
    "loss and logits": lambda results: results[0] + results[1].square().mean(),
    "logits": lambda results: results[1].sum(),
    "hidden": lambda results: results[2].square().sum(),
    "all": lambda results: results[0] + results[1].mean() + results[2].sum(),
}


def gradients(model: nn.Module, run: Any, use: Use) -> list[Tensor | None]:
    """Those of the parameters."""
    generator = torch.Generator().manual_seed(3)
    tokens, labels = (torch.randint(0, 50, (4, 6), generator=generator) for _ in range(2))
    model.zero_grad()
    use(run(tokens, labels)).backward()
    return [parameter.grad for parameter in model.parameters()]


def check(found: list[Tensor | None], expected: list[Tensor | None]) -> None:
    """Both have gradients for the same parameters, and these are close."""
    assert [one is None for one in found] == [one is None for one in expected]
    for one, other in zip(found, expected, strict=True):
        if one is not None:
            torch.testing.assert_close(one, other)


@pytest.fixture
def wholes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was compiled because an absent gradient arrived."""
    made: list[Any] = []
    real = PartialBackward.__init__

    def noting(self: PartialBackward, usual: Any, make: Callable[[], Any]) -> None:
        real(self, usual, lambda: made.append(make()) or made[-1])  # type: ignore[func-returns-value]

    monkeypatch.setattr(PartialBackward, "__init__", noting)
    return made


@pytest.mark.parametrize("first", list(USES))
def test_gradients_are_eagers_whatever_is_differentiated(
    first: str, tmp_path: Path, wholes: list[Any]
) -> None:
    torch.manual_seed(0)
    model = Model()
    compiled = fxstack.compile(model, options={"cache_dir": tmp_path})
    for name in (first, *USES, first):
        check(gradients(model, compiled, USES[name]), gradients(model, model, USES[name]))
    assert len(wholes) == 1


def test_the_whole_backward_is_compiled_when_it_is_needed(tmp_path: Path, wholes: list[Any]) -> None:
    model = Model()
    compiled = fxstack.compile(model, options={"cache_dir": tmp_path})
    for _ in range(3):
        gradients(model, compiled, USES["loss"])
    assert not wholes
    gradients(model, compiled, USES["all"])
    gradients(model, compiled, USES["logits"])
    assert len(wholes) == 1


def test_a_stored_program_has_the_whole_backward(
    tmp_path: Path, wholes: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, options = Model(), {"cache_dir": tmp_path}
    gradients(model, fxstack.compile(model, options=options), USES["loss"])
    fxstack.reset()
    again = fxstack.compile(model, options=options)
    with monkeypatch.context() as patched:  # nothing is compiled in the next process
        patched.setattr(inductor_codegen, "compile_graph", None)
        patched.setattr(inductor_codegen, "begin_graph", None)
        check(gradients(model, again, USES["loss"]), gradients(model, model, USES["loss"]))
    check(gradients(model, again, USES["all"]), gradients(model, model, USES["all"]))
    assert len(wholes) == 1
    fxstack.reset()
    last = fxstack.compile(model, options=options)
    with monkeypatch.context() as patched:  # nor, once the guess was wrong, for all gradients
        patched.setattr(inductor_codegen, "compile_graph", None)
        check(gradients(model, last, USES["all"]), gradients(model, model, USES["all"]))
    assert len(wholes) == 1


def test_without_a_cache(wholes: list[Any]) -> None:
    model = Model()
    compiled = fxstack.compile(model, options={"cache": False})
    for name in ("loss", "all"):
        check(gradients(model, compiled, USES[name]), gradients(model, model, USES[name]))
    assert len(wholes) == 1


def test_two_numbers_tell_of_no_loss(wholes: list[Any]) -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x.sum(), x.square().mean(), x * 2

    x = torch.randn(4, requires_grad=True)
    total, mean, twice = fxstack.compile(program)(x)
    (total + mean + twice.sum()).backward()
    assert not wholes
    assert x.grad is not None
    torch.testing.assert_close(x.grad, 3 + x.detach() / 2)


def test_what_eager_does_not_multiply_makes_no_nan() -> None:
    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.square().sum(), x.sqrt()  # whose derivative at 0 is infinite

    compiled = fxstack.compile(program)
    for take in (0, 1):
        x = torch.tensor([0.0, 4.0], requires_grad=True)
        y = x.detach().clone().requires_grad_()
        compiled(x)[take].sum().backward()
        program(y)[take].sum().backward()
        assert x.grad is not None
        assert y.grad is not None
        assert torch.equal(x.grad, y.grad)


def test_sizes_that_vary(wholes: list[Any]) -> None:
    model = nn.Linear(8, 8)

    def program(x: Tensor) -> tuple[Tensor, Tensor]:
        made = model(x).relu()
        return made.square().mean(), made

    compiled = fxstack.compile(program)
    for rows in (3, 5, 9):
        found = []
        for run in (compiled, program):
            x = torch.ones(rows, 8, requires_grad=True)
            model.zero_grad()
            run(x)[0].backward()
            found.append([x.grad, *(parameter.grad for parameter in model.parameters())])
        check(*found)
    assert not wholes


def test_torchs_operators_where_the_whole_backward_cannot_be_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As in a process without a compiler that has found the program in the store."""

    def missing(*_: Any, **__: Any) -> Any:
        raise MissingCompilerError("IND111", "there is no compiler")

    model = Model()
    compiled = fxstack.compile(model, options={"cache_dir": tmp_path})
    gradients(model, compiled, USES["loss"])
    monkeypatch.setattr(inductor_codegen, "compile_graph", missing)
    for name in USES:
        check(gradients(model, compiled, USES[name]), gradients(model, model, USES[name]))
    assert [record for record in caplog.records if "torch's own kernels" in record.getMessage()]
