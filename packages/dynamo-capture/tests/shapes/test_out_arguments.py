"""``out=``: lists of tensors, operators of the program that have no form without it, and other dtypes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from dynamo_capture import CaptureError, optimize
from dynamo_capture.shapes.out_arguments import CASTING

X = torch.arange(12.0).reshape(2, 6)


@pytest.fixture(scope="module")
def operators() -> Iterator[Any]:
    library = torch.library.Library("of_out_arguments", "DEF")
    library.define("split(Tensor x, SymInt[] sizes, int dim=0, *, Tensor(a!)[] out) -> ()")
    library.define("joined(Tensor[] parts, *, Tensor(a!) out) -> ()")

    def split(x: torch.Tensor, sizes: list[int], dim: int, out: list[torch.Tensor]) -> None:
        torch.split_with_sizes_copy(x, sizes, dim=dim, out=out)

    def joined(parts: list[torch.Tensor], out: torch.Tensor) -> None:
        torch.cat(parts, out=out)

    for kind in ("CPU", "Meta"):
        library.impl("split", split, kind)
        library.impl("joined", joined, kind)
    yield torch.ops.of_out_arguments
    library._destroy()  # type: ignore[no-untyped-call]


def _compared(program: Callable[..., Any], make: Callable[[], Any], **options: Any) -> Any:
    compiled = optimize(lambda graph, inputs: graph.forward, **options)(program)
    for _ in range(2):
        plain, fast = make(), make()
        torch.testing.assert_close(compiled(*fast), program(*plain), rtol=0, atol=0)
        torch.testing.assert_close(fast, plain, rtol=0, atol=0)
    return compiled.__fxstack_capture__.report


def test_lists(operators: Any) -> None:
    def program(x: torch.Tensor, sizes: list[int], out: list[torch.Tensor]) -> Any:
        y = x * 2
        operators.split(y, sizes, 1, out=out)
        torch.split_with_sizes_copy(x + 1, sizes, dim=1, out=[part[:] for part in out[::-1]][::-1])
        return out[0] + 1, y

    _compared(program, lambda: (X.clone(), [4, 2], [torch.zeros(2, 4), torch.zeros(2, 2)]), fullgraph=True)


def test_one_tensor(operators: Any) -> None:
    def program(x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        operators.joined([x, x + 1], out=out)
        return out * 2

    _compared(program, lambda: (X.clone(), torch.zeros(4, 6)), fullgraph=True)


def test_tensors_of_the_graph() -> None:
    def program(x: torch.Tensor) -> Any:
        out = [torch.empty(6) for _ in range(2)]
        torch.unbind_copy(x, 0, out=out)
        return out[0] + out[1]

    _compared(program, lambda: (X.clone(),), fullgraph=True)


@pytest.mark.parametrize("out", [(0, 6), (3, 6)])
def test_tensors_that_are_resized_end_the_graph(out: tuple[int, int]) -> None:
    def program(x: torch.Tensor, out: tuple[torch.Tensor, ...]) -> Any:
        y = x + 1
        torch.unbind_copy(y, 0, out=out)
        return out[0] * 2, y * 2

    def make() -> Any:
        return X.clone(), tuple(torch.zeros(n) for n in out)

    with pytest.warns(UserWarning, match="resized") if out[0] else pytest.MonkeyPatch.context():
        _compared(program, make)
        with pytest.raises(CaptureError, match="CAP206"):
            optimize(lambda graph, inputs: graph.forward, fullgraph=True)(program)(*make())


DTYPES = (torch.bool, torch.int64, torch.float16, torch.float32, torch.float64)


def _given(dtype: torch.dtype) -> torch.Tensor:
    numbers = torch.linspace(0.25, 3, 23)
    return numbers > 1 if dtype is torch.bool else numbers.to(dtype)


def _result(function: Callable[..., Any], args: tuple[torch.Tensor, ...]) -> Any:
    """What the function of one or two tensors gives, with what it was given; None for dtypes that it refuses."""
    for count in (2, 1):
        try:
            return function(*args[:count]), args[:count]
        except TypeError:
            continue
        except RuntimeError:
            return None
    return None


@pytest.mark.parametrize("name", sorted(CASTING))
def test_kernels_compute_in_the_dtype_of_the_result_and_cast(name: str) -> None:
    function = getattr(torch, name)
    compared = 0
    for pair in itertools.product(map(_given, DTYPES), map(_given, DTYPES)):
        found = _result(function, pair)
        if found is None:
            continue
        result, args = found
        for dtype in DTYPES:
            if torch.can_cast(result.dtype, dtype):
                out = torch.zeros(result.shape, dtype=dtype)
                function(*args, out=out)
                torch.testing.assert_close(out, result.to(dtype), rtol=0, atol=0, equal_nan=True)
                compared += 1
    assert compared


def test_another_dtype() -> None:
    def program(n: torch.Tensor, out: torch.Tensor) -> Any:
        torch.add(2, n, out=out)
        return torch.gt(out, 3, out=torch.zeros(6)), torch.add(2, 3, out=torch.tensor(0.0))

    _compared(program, lambda: (torch.arange(6), torch.zeros(6)), fullgraph=True)


def test_what_torch_refuses_is_left_to_it() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.add(x, 1, out=torch.zeros(3, dtype=torch.int64))

    with pytest.raises(RuntimeError, match="can't be cast"):
        optimize(lambda graph, _: graph.forward)(program)(torch.ones(3))
    with pytest.raises(CaptureError, match="CAP206"):
        optimize(lambda graph, _: graph.forward, fullgraph=True)(program)(torch.ones(3))
