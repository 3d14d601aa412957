"""Specs of indices of triangles of any size, and of distances between pairs."""

from __future__ import annotations

import pytest
import torch

from fx_interface.symbols import ShapeEnv, evaluate
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps import LIBRARY
from primtorch_decomps.testing import check_open_spec


@pytest.mark.parametrize("name", ["tril_indices", "triu_indices"])
def test_triangles_of_symbolic_size(name: str) -> None:
    operator = getattr(torch.ops.aten, name).default
    for rows, columns in ((2, 2), (3, 5), (6, 4)):
        for offset in range(-7, 8):
            env = ShapeEnv()
            sides = [env.create_symbol(rows), env.create_symbol(columns)]
            expected = operator(rows, columns, offset)
            if expected.shape[1] < 2:
                continue
            found = LIBRARY.infer(operator, (*sides, offset), {}, env)
            assert isinstance(found, TensorSpec)
            hints = {atom: info.hint for atom, info in env.symbols.items() if info.hint is not None}
            assert [evaluate(size, hints) for size in found.sizes] == list(expected.shape)
            assert not any(guard.fixes for guard in env.guards)


def test_distances_of_pairs() -> None:
    x = torch.rand(5, 3)
    check_open_spec("aten._pdist_forward.default", x, 2.0)
    made = torch.ops.aten._pdist_forward.default(x, 2.0)
    check_open_spec("aten._pdist_backward.default", made, x, 2.0, made)
