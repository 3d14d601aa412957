"""Warnings of torch's own Python functions: in each run, once, about the program's line."""

import warnings

import torch
from torch.nn import functional as F

from dynamo_capture import optimize
from dynamo_capture.semantics.tensors.python_warnings import listening

X = torch.arange(3.0)


def forward(graph_module, example_inputs):
    return graph_module.forward


def heard(function):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = function(X)
    return [(str(one.message), one.category, one.filename, one.lineno) for one in found], result


def test_a_warning_is_given_in_each_run():
    def implicit(x):
        return F.softmax(x) * 2

    def broadcast(x):
        return F.mse_loss(x[None], x[:, None])

    def deprecated(x):
        return F.l1_loss(x, x + 1, size_average=False)

    for function in (implicit, broadcast, deprecated):
        expected, result = heard(function)
        assert len(expected) == 1
        compiled = optimize(forward, fullgraph=True)(function)
        for _ in range(2):
            found, other = heard(compiled)
            assert found == expected
            torch.testing.assert_close(other, result, rtol=0, atol=0)


def test_a_warning_belongs_to_the_block_that_catches_it():
    def f(x):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            loss = F.mse_loss(x, x + 1, reduce=False) + F.kl_div(x, x, size_average=True)
        return loss, [str(one.message) for one in found]

    compiled = optimize(forward)(f)
    for _ in range(2):
        outside, (loss, found) = heard(compiled)
        expected = heard(f)[1]
        assert found == expected[1]
        assert len(found) == 2
        assert not outside
        torch.testing.assert_close(loss, expected[0], rtol=0, atol=0)


def test_a_function_that_does_not_warn_stays_one_operation():
    graphs = []

    def backend(graph_module, example_inputs):
        graphs.append(graph_module)
        return graph_module.forward

    optimize(backend)(lambda x: F.softmax(x, 0))(X)
    assert F.softmax in [node.target for node in graphs[0].graph.nodes]


def test_only_functions_that_may_warn_are_copied():
    assert listening(F.relu)[0] is F.relu
    for function, given in (F.softmax, {}), (F.cross_entropy, {"target": X, "reduce": True}):
        copied, notes = listening(function)
        copied(X, **given)
        assert notes.anything
