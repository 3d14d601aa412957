"""Functions of small arrays of numpy run as they are written where the caller has them weighed."""

import numpy as np
import pytest
import torch

from dynamo_capture import optimize
from fx_interface.conformance.outcomes import differences, observe

SMALL, LARGE = np.arange(8.0), np.arange(200_000.0)


class Weighed:
    """A function that is weighed, and the graphs that the backend was given."""

    def __init__(self, function, **options):
        self.graphs = 0
        self.function = optimize(self.backend, weighs_arrays=True, **options)(function)
        self.report = self.function.__fxstack_capture__.report

    def backend(self, graph_module, example_inputs):
        self.graphs += 1
        return graph_module.forward


def add(a, b):
    return a * 2 + b


def test_small_arrays_are_left_to_python():
    weighed = Weighed(add)
    for array in (SMALL, SMALL[:4], SMALL.astype(np.float32), SMALL.reshape(2, 4)):
        assert not differences(observe(add, array, array), observe(weighed.function, array, array))
    assert weighed.graphs == 0
    assert len(weighed.report.replacements) == 1  # for all of them
    ((code, reason),) = weighed.report.eager
    assert code is add.__code__
    assert "small arrays" in reason


def test_large_arrays_are_a_graph():
    weighed = Weighed(add)
    weighed.function(SMALL, SMALL)
    assert np.array_equal(weighed.function(LARGE, LARGE), add(LARGE, LARGE))
    assert weighed.graphs == 1
    weighed.function(SMALL, SMALL)
    assert weighed.graphs == 1


def test_calls_of_numpy_weigh_more():
    weighed = Weighed(lambda a: np.linalg.norm(a * 2))
    weighed.function(LARGE[:20_000])
    assert weighed.graphs == 0


@pytest.mark.parametrize(
    "options", [{"fullgraph": True}, {"weighs_arrays": False}], ids=["whole", "not asked for"]
)
def test_where_nothing_is_weighed(options):
    seen = []

    def backend(graph_module, example_inputs):
        seen.append(graph_module)
        return graph_module.forward

    optimize(backend, **{"weighs_arrays": True, **options})(add)(SMALL, SMALL)
    assert len(seen) == 1


def test_tensors_beside_arrays_are_a_graph():
    weighed = Weighed(lambda x, a: x + torch.from_numpy(a))
    weighed.function(torch.ones(8), SMALL)
    assert weighed.graphs == 1


def test_another_argument_is_another_program():
    def f(a, x=None):
        return a + 1 if x is None else (a + 1, torch.sin(x))

    weighed = Weighed(f)
    weighed.function(SMALL)
    weighed.function(SMALL, torch.ones(3))
    assert weighed.graphs == 1
    assert len(weighed.report.replacements) == 2


def test_effects_are_made_once():
    noted = []

    def f(a):
        a += 1
        noted.append(a.sum())
        return a[::2], len(noted)

    weighed = Weighed(f)
    array = np.zeros(4)
    first, second = weighed.function(array), weighed.function(array)
    assert (first[1], second[1]) == (1, 2)
    assert noted == [4.0, 8.0]
    assert weighed.graphs == 0
    assert np.shares_memory(first[0], array)


def test_exceptions_are_numpys():
    weighed = Weighed(lambda a, b: a + b)
    weighed.function(SMALL, SMALL)
    with pytest.raises(ValueError, match="broadcast"):
        weighed.function(SMALL, SMALL[:3])
