"""A program that is told that it is compiled and then raises is told no there: one graph, and eager's exceptions."""

from __future__ import annotations

import pytest
import torch

from dynamo_capture import optimize

X = torch.arange(6.0)


def _captured(program):
    graphs = []

    def backend(graph_module, example_inputs):
        graphs.append(graph_module)
        return graph_module.forward

    return optimize(backend)(program), graphs


def test_only_the_place_that_leads_to_the_exception_is_told_no():
    def scaled(x, factor=None):
        if factor is None and not torch.compiler.is_compiling():
            factor = 2
        return x * factor

    def program(x):
        kept = "compiled" if torch.compiler.is_compiling() else "eager"
        y = scaled(x)
        return y + 1, kept

    captured, graphs = _captured(program)
    found, kept = captured(X)
    torch.testing.assert_close(found, program(X)[0], rtol=0, atol=0)
    assert (len(graphs), kept) == (1, "compiled")


def test_exceptions_that_the_program_raises_anyway():
    def program(x, log):
        try:
            log.append("in")
            if torch.compiler.is_compiling():
                x = x + 1 - 1
            if x.shape[0] > 4:
                raise ValueError("too long")
            return x * 2
        finally:
            log.append("out")

    captured, _ = _captured(program)
    for x in (X, X[:3], X):
        outcomes = []
        for function in (program, captured):
            log = []
            try:
                outcomes.append((function(x, log).tolist(), log))
            except ValueError as error:
                outcomes.append((str(error), log))
        assert outcomes[0] == outcomes[1]


def test_a_break_while_the_false_exception_is_handled():
    def program(x, log):
        try:
            factor = None if torch.compiler.is_compiling() else 3
            return x * (factor + 1)
        finally:
            log.append(str(x.sum()))

    captured, graphs = _captured(program)
    logs = [], []
    for _ in range(2):
        torch.testing.assert_close(captured(X, logs[0]), program(X, logs[1]), rtol=0, atol=0)
    assert logs[0] == logs[1]
    assert graphs


def test_a_program_that_always_raises():
    def program(x):
        for _ in range(9):
            if not torch.compiler.is_compiling():
                x = x + 1
        return x.no_such_attribute

    captured, _ = _captured(program)
    with pytest.raises(AttributeError, match="no_such_attribute"):
        captured(X)


def test_an_operation_whose_exception_names_sizes_that_vary_is_an_exception():
    """Its words are not known while it is captured, so it would end the graph there, and raise in Python then."""

    def program(x, y):
        if torch.compiler.is_compiling():
            y = torch.cat((y, y), 1)
        return torch.nn.functional.scaled_dot_product_attention(x, x, y)  # which names sizes in torch 2.11

    optimized, _ = _captured(program)
    for rows in (3, 4, 5):
        x, y = torch.randn(rows, 4, rows, 8), torch.randn(rows, 4, rows, 8)
        assert torch.equal(optimized(x, y), program(x, y))


def test_an_operation_whose_exception_names_classes_is_an_exception():
    """The same of words that name what stands for an argument."""

    def program(x):
        over = "rows" if torch.compiler.is_compiling() else 0
        return torch.sum(x * 2, over)

    captured, _ = _captured(program)
    assert torch.equal(captured(X), program(X))
