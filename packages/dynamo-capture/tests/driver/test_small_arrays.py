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


def best(scores):
    place = np.argmax(scores)
    return place if scores[place] > 0 else None


def test_what_content_decides_about_small_arrays_is_left_too():
    weighed = Weighed(best)
    for array in (SMALL, -SMALL - 1, SMALL[::-1].copy()):
        assert not differences(observe(best, array), observe(weighed.function, array))
    assert weighed.graphs == 0
    assert len(weighed.report.replacements) == 1


def test_calls_of_what_is_left_are_weighed_alone():
    def apart(scores, x):
        return best(scores), x * 2

    def f(scores):
        if scores.sum() < 0:
            return None
        return by_torch(scores)

    def by_torch(scores):
        found = torch.from_numpy(scores)
        for _ in range(20):
            found = torch.sin(found)
        return found

    weighed = Weighed(f)
    assert torch.equal(weighed.function(SMALL), by_torch(SMALL))
    assert weighed.graphs == 1
    weighed = Weighed(apart)
    weighed.function(SMALL, torch.ones(2))
    assert weighed.graphs == 1  # a tensor among the arguments: what follows the break may be worth a graph


@pytest.mark.parametrize("name", ["named", "closed over", "module"])
def test_frames_with_something_of_torch_are_compiled(name):
    layer = torch.nn.Linear(8, 2).double()

    def named(a):
        return torch.from_numpy(a) * 2 + 1 if a.sum() > 0 else None

    def closed_over(a):
        return layer(a) if a.sum() < 0 else None

    def module(a, model):
        return model if a.sum() > 0 else None

    function = {"named": named, "closed over": closed_over, "module": module}[name]
    weighed = Weighed(function)
    weighed.function(SMALL, layer) if name == "module" else weighed.function(SMALL)
    assert weighed.graphs > 0


def test_operations_on_single_numbers_spare_little():
    def f(a, x):
        product = 1.0
        for place in range(4):
            product *= (x - a[place]) / (a[4] - a[5])
        return product

    weighed = Weighed(f)
    for x in (0.25, 0.5, 0.75, 1.5):
        assert not differences(observe(f, SMALL, x), observe(weighed.function, SMALL, x))
    assert weighed.graphs == 0
    assert len(weighed.report.replacements) == 2  # the float is known in the first


def larger(a, b):
    return a if a > b else b


def test_what_breaks_in_a_function_of_arrays_is_called():
    def between(values, first, last):
        return larger(values[first], values[last]) - larger(values[last], values[first]) / 2

    def f(x, values):
        y = x * 2
        return y + float(between(values, 0, 2)), y.sin()

    weighed = Weighed(f)
    for values in (SMALL, SMALL[::-1].copy(), -SMALL):
        x = torch.ones(3)
        assert not differences(observe(f, x, values), observe(weighed.function, x, values))
    left = {code.co_name for code, reason in weighed.report.eager if "small arrays" in reason}
    assert left == {"between"}
    stops = [str(made.stopped) for _, made in weighed.report.replacements if made.stopped is not None]
    assert any("between computes with arrays" in stop for stop in stops), stops


def test_a_function_of_arrays_is_traced_with_tensors():
    def f(x, y, values):
        return larger(x.shape[0], 2) * x + float(larger(values[0], values[1])), torch.where(y > 0, y, x)

    weighed = Weighed(f)
    x = torch.ones(3)
    for values in (SMALL, -SMALL):
        assert not differences(observe(f, x, x, values), observe(weighed.function, x, x, values))
    assert weighed.graphs > 0


def test_functions_of_arrays_that_change_them():
    def shifted(values, log):
        values += 1
        if values.sum() > 20:
            log.append(values.sum())
        return values

    def f(x, values, log):
        return x + float(shifted(values, log)[0]) + float(shifted(values, log)[1])

    weighed = Weighed(f)
    for _ in range(3):
        assert not differences(
            observe(f, torch.ones(2), np.arange(4.0), []),
            observe(weighed.function, torch.ones(2), np.arange(4.0), []),
        )
