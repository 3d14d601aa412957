"""Products of float32 by a processor's unit for matrices of bfloat16: their errors, and what they leave to torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from inductor_codegen import CodegenOptions, compile_graph
from inductor_codegen.testing import ExampleGraph

aten = torch.ops.aten
_FLAGS = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
HAS_UNIT = "amx_bf16" in _FLAGS and "avx512_bf16" in _FLAGS
needs_unit = pytest.mark.skipif(not HAS_UNIT, reason="this processor has no unit for matrices")


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True, scope="module")
def _faster_products() -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    yield
    torch.set_float32_matmul_precision(before)


def rand(*sizes: int, seed: int = 0) -> Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


def compiled(folder: Path, *inputs: Tensor) -> Callable[..., Tensor]:
    """The product of two matrices, or of the last two with a row added."""
    graph = ExampleGraph()
    op = aten.mm.default if len(inputs) == 2 else aten.addmm.default
    module = graph.build(graph.call(op, *[graph.input(x, f"x{i}") for i, x in enumerate(inputs)]))
    run = compile_graph(module, CodegenOptions(folder))
    return lambda *given: run(*given)[0]


@pytest.fixture(scope="module")
def square(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Tensor]:
    """The product of two row-major matrices of 256 x 256."""
    return compiled(tmp_path_factory.mktemp("square"), rand(256, 256), rand(256, 256))


SHAPES = [(131, 1001, 300), (128, 64, 1100), (300, 700, 129)]
LAYOUTS: dict[str, Callable[[int, int, int], Tensor]] = {
    "row-major": lambda n, m, seed: rand(n, m, seed=seed),
    "transposed": lambda n, m, seed: rand(m, n, seed=seed).t(),
    "rows-with-gaps": lambda n, m, seed: rand(n, m + 7, seed=seed)[:, 3 : m + 3],
    "columns-with-gaps": lambda n, m, seed: rand(m, n + 5, seed=seed)[:, 2 : n + 2].t(),
}


@needs_unit
@pytest.mark.parametrize("rows, terms, columns", SHAPES)
@pytest.mark.parametrize(
    "left, right", [*zip(LAYOUTS, LAYOUTS, strict=True), *zip(LAYOUTS, reversed(LAYOUTS), strict=True)]
)
def test_nearer_to_float64_than_torchs(
    tmp_path: Path, left: str, right: str, rows: int, terms: int, columns: int
) -> None:
    lhs, rhs = LAYOUTS[left](rows, terms, 1), LAYOUTS[right](terms, columns, 2)
    exact, expected = lhs.double() @ rhs.double(), lhs @ rhs
    result = compiled(tmp_path, lhs, rhs)(lhs, rhs)
    assert result.stride() == (columns, 1)
    assert (result - exact).square().mean() < 0.8 * (expected - exact).square().mean()
    assert (result - exact).abs().max() <= (expected - exact).abs().max()


@needs_unit
def test_a_row_is_added_once(tmp_path: Path) -> None:
    row, lhs, rhs = rand(515), rand(257, 900, seed=1), rand(900, 515, seed=2)
    exact = row.double() + lhs.double() @ rhs.double()
    result, expected = compiled(tmp_path, row, lhs, rhs)(row, lhs, rhs), torch.addmm(row, lhs, rhs)
    assert (result - exact).abs().max() <= (expected - exact).abs().max()


@needs_unit
def test_a_row_of_the_result_depends_on_its_row_alone(tmp_path: Path) -> None:
    lhs, rhs = rand(300, 400), rand(400, 300, seed=1)
    run = compiled(tmp_path, lhs, rhs)
    torch.set_num_threads(1)
    expected = run(lhs, rhs)
    torch.set_num_threads(3)
    assert torch.equal(run(lhs, rhs), expected)
    assert torch.equal(run(lhs.roll(17, 0), rhs), expected.roll(17, 0))


def with_one(value: float) -> Tensor:
    made = rand(256, 256)
    made[200, 100] = value
    return made


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), float("nan"), 1e-42, -1e-37, 3e38, 1e-30])
@pytest.mark.parametrize("on_the_left", [True, False])
def test_numbers_whose_parts_would_be_lost_are_left_to_torch(
    square: Callable[..., Tensor], value: float, on_the_left: bool
) -> None:
    inputs = [with_one(value), rand(256, 256, seed=1)]
    lhs, rhs = inputs if on_the_left else reversed(inputs)
    torch.testing.assert_close(square(lhs, rhs), lhs @ rhs, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("power", [-100, -60, -45, -20, 0, 40, 60, 100])
@pytest.mark.parametrize("other", [-60, -40, 0, 50])
def test_small_and_large_numbers(square: Callable[..., Tensor], power: int, other: int) -> None:
    lhs, rhs = rand(256, 256).sign() * 2.0**power, rand(256, 256, seed=1) * 2.0**other
    lhs = lhs * (1 + rand(256, 256, seed=2).abs())
    exact, expected = lhs.double() @ rhs.double(), lhs @ rhs
    result = square(lhs, rhs)
    finite = expected.isfinite()
    assert torch.equal(result.isfinite(), finite)
    errors, allowed = (result - exact)[finite], (expected - exact)[finite]
    if len(errors):
        assert errors.abs().max() <= 1.5 * allowed.abs().max()


def test_zeros_and_whole_numbers_are_exact(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(3)
    lhs = torch.randint(-2000, 2000, (256, 300), generator=generator).float()
    rhs = torch.randint(-20, 20, (300, 256), generator=generator).float()
    lhs[:40], rhs[:, 60:100] = 0, 0
    run = compiled(tmp_path, lhs, rhs)
    assert torch.equal(run(lhs, rhs), (lhs.double() @ rhs.double()).float())
    assert torch.equal(run(torch.zeros_like(lhs), rhs), torch.zeros(256, 256))


def test_single_numbers_of_a_sum_are_as_exact_as_the_operator(square: Callable[..., Tensor]) -> None:
    lhs, rhs = torch.eye(256), rand(256, 256) * torch.logspace(-20, 20, 256)
    result = square(lhs, rhs)
    torch.testing.assert_close(result, rhs, rtol=2**-23, atol=0)
