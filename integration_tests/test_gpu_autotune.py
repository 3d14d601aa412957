"""Choices by measuring on a CUDA device: results are right, whatever is chosen, and are chosen once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import fxstack
from inductor_codegen.ir.products.form import ProductTiles
from inductor_codegen.native.tuning import launches, products

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


class Gated(nn.Module):
    """Products with a bias, with an activation, with a gate and with a residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.gate = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(nn.functional.gelu(self.up(x)) * torch.sigmoid(self.gate(x)))


def errors(model: nn.Module, run: Any, x: Tensor) -> list[float]:
    """Of result and gradients, to float64, as shares of the largest number."""
    exact = Gated(x.shape[-1]).cuda().double()
    exact.load_state_dict({name: value.double() for name, value in model.state_dict().items()})
    found = []
    for called, given in ((exact, x.double()), (run, x.clone())):
        given.requires_grad_()
        model.zero_grad()
        result = called(given)
        result.double().square().sum().backward()
        of = exact if called is exact else model
        found.append([result, given.grad, *(parameter.grad for parameter in of.parameters())])
    return [float((b.double() - a).abs().max() / a.abs().max()) for a, b in zip(*found, strict=True)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("wins", ["measured", "always"])
def test_products_are_as_exact_as_eagers(
    dtype: torch.dtype, wins: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if wins == "always":  # the library never wins
        monkeypatch.setattr(products, "_LEAST_GAIN", -1e9)
    torch.manual_seed(0)
    model = Gated(72).cuda().to(dtype)
    compiled = fxstack.compile(model, options={"autotune": True, "cache_dir": tmp_path}, fullgraph=True)
    for rows in (96, 1, 50):
        x = torch.randn(rows, 72, device="cuda", dtype=dtype)
        ours, eagers = errors(model, compiled, x), errors(model, model, x)
        assert all(a <= 2 * b + 1e-3 for a, b in zip(ours, eagers, strict=True)), (ours, eagers)


def test_a_choice_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    measured: list[str] = []
    for module, name in ((products._Contest, "run"), (launches._Race, "_compared")):
        real: Any = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *args, real=real, name=name: (measured.append(name), real(*args))[1]
        )
    model = Gated(64).cuda().bfloat16()
    x = torch.randn(2048, 64, device="cuda", dtype=torch.bfloat16)
    options = {"autotune": True, "cache_dir": tmp_path}

    def program(given: Tensor) -> Tensor:
        return model(given).softmax(-1)  # a kernel of its own, whatever becomes of the products

    with torch.no_grad():
        first = fxstack.compile(program, options=options)(x)
        assert {"run", "_compared"} <= set(measured)
        measured.clear()
        fxstack.reset()
        again = fxstack.compile(lambda given: program(given).neg(), options=options)(x)
    assert measured.count("run") == 0
    assert measured.count("_compared") <= 1  # the last kernel is another one
    torch.testing.assert_close(again, -first)


def test_random_numbers_and_streams_are_left_alone(tmp_path: Path) -> None:
    model = Gated(64).cuda().bfloat16()
    x = torch.randn(256, 64, device="cuda", dtype=torch.bfloat16)
    before, stream = torch.cuda.get_rng_state(), torch.cuda.current_stream()
    with torch.no_grad():
        fxstack.compile(model, options={"autotune": True, "cache_dir": tmp_path})(x)
    assert torch.equal(torch.cuda.get_rng_state(), before)
    assert torch.cuda.current_stream() == stream


def test_the_largest_tiles_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the tiles that are tried gives the library's product."""
    monkeypatch.setattr(products, "_LEAST_GAIN", -1e9)
    a, b = (torch.randn(300, 300, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    for tiles in products.tiles_for((1, 300, 300, 300), 2):
        chosen: list[ProductTiles] = [tiles]
        monkeypatch.setattr(products, "tiles_for", lambda sizes, itemsize, chosen=chosen: chosen)
        options = {"autotune": True, "cache_dir": tmp_path / f"{tiles}"}
        found = fxstack.compile(lambda x, y: (x @ y).relu(), options=options)(a, b)
        torch.testing.assert_close(found, (a @ b).relu(), msg=str(tiles))
