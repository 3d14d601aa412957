"""What ``inductor`` leaves to Python because numpy alone is faster."""

import numpy as np
import pytest

import fxstack


@pytest.mark.parametrize(("backend", "graphs"), [("inductor", 0), ("eager", 1)])
def test_small_arrays(backend, graphs):
    compiled = fxstack.compile(lambda a: a * 2 + 1, backend=backend)
    array = np.arange(4.0)
    assert np.array_equal(compiled(array), array * 2 + 1)
    found = compiled.__fxstack_capture__.report.replacements
    assert sum(one.graph is not None for _, one in found) == graphs
