"""Options of a part of the program."""

import pytest
import torch

import dynamo_capture
from dynamo_capture import CaptureError, error_on_graph_break, graph_break, optimize, patch_options
from dynamo_capture.foundation.part_options import part_option
from primtorch_decomps import LIBRARY

X = torch.arange(6.0).reshape(2, 3)


def captured(function, **settings):
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    return optimize(backend, operators=LIBRARY, **settings)(function), graphs


def shapes(fast, graphs):
    for size in (2, 3, 4, 5, 6):
        fast(torch.ones(size, 3))
    return len(graphs)


def test_in_plain_python_nothing_changes():
    with patch_options(dynamic=False) as manager:
        assert part_option("dynamic", None) is False
        with manager, error_on_graph_break(True):
            assert part_option("error_on_graph_break", False)
        assert part_option("dynamic", None) is False
        assert not part_option("error_on_graph_break", False)
    assert part_option("dynamic", None) is None
    assert patch_options(dynamic=True)(lambda x: x + 1)(1) == 2


def test_other_options_and_values_are_refused():
    with pytest.raises(TypeError, match="no option 'mode'"):
        patch_options(mode="strict")
    with pytest.raises(ValueError, match="dynamic=3"):
        patch_options(dynamic=3)


def test_sizes_of_what_is_read_inside():
    def plain(x):
        return x.sin() * x.shape[0]

    def f(x):
        with patch_options(dynamic=False):
            y = x.sin()
        return y * x.shape[0]

    assert shapes(*captured(plain)) == 2
    assert shapes(*captured(f)) == 5
    assert shapes(*captured(patch_options(dynamic=False)(plain))) == 5
    assert shapes(*captured(patch_options(dynamic=True)(plain))) == 1


def test_a_break_inside_is_an_error():
    def f(x, how):
        y = x + 1
        with error_on_graph_break(how):
            graph_break("here")
            y = y * 2
        graph_break("there")
        return y

    fast, _ = captured(f)
    assert torch.equal(fast(X, False), f(X, False))
    fast, _ = captured(f)
    with pytest.raises(CaptureError, match="here"):
        fast(X, True)
    assert not part_option("error_on_graph_break", False)


def inner(x):
    graph_break("in the middle")
    return x * 2


@pytest.mark.parametrize("outer", [True, False])
def test_the_innermost_part_says(outer):
    @error_on_graph_break(outer)
    def f(x):
        return DECORATED[not outer](x) + 1

    fast, _ = captured(f)
    if outer:
        assert torch.equal(fast(X), f(X))
        assert torch.equal(fast(X), f(X))
    else:
        with pytest.raises(CaptureError, match="in the middle"):
            fast(X)


DECORATED = {flag: error_on_graph_break(flag)(inner) for flag in (True, False)}


def test_a_part_that_is_resumed_keeps_its_options():
    def f(x):
        with patch_options(dynamic=True), error_on_graph_break(False):
            graph_break()
            y = torch.cat([x, x]).sin()
            assert part_option("dynamic", None) is True
        graph_break()
        return y * 2, part_option("dynamic", None)

    fast, graphs = captured(f)
    for size in (2, 3, 4):
        result, option = fast(torch.ones(size, 3))
        torch.testing.assert_close(result, torch.ones(2 * size, 3).sin() * 2, rtol=0, atol=0)
        assert option is None
    assert part_option("dynamic", None) is None


def test_a_part_left_by_an_exception():
    def f(x):
        try:
            with patch_options(dynamic=False):
                raise ValueError("no")
        except ValueError:
            return x * 2, part_option("dynamic", None)

    fast, _ = captured(f)
    assert fast(X)[1] is None
    assert part_option("dynamic", None) is None


def test_one_graph_and_torchs_own_name():
    def f(x):
        with patch_options(dynamic=False):
            y = x.sin()
        with error_on_graph_break(True):
            return y * 2

    fast, graphs = captured(f, fullgraph=True)
    assert torch.equal(fast(X), f(X))
    assert len(graphs) == 1
    assert {"patch_options", "error_on_graph_break"} <= set(dynamo_capture.__all__)
