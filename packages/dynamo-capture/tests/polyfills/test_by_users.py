"""Substitutes that a program declares."""

import json

import pytest
import torch

from dynamo_capture import optimize, run_graph, substitute_in_graph

X = torch.arange(3.0)


def test_a_substitute_is_traced_where_the_original_is_called():
    called = []

    def opaque(x, factor=2.0):
        called.append(json.dumps([factor]))
        return x * factor

    @substitute_in_graph(opaque, can_constant_fold_through=True)
    def traceable(x, factor=2.0):
        return x * factor

    fast = optimize(run_graph, fullgraph=True)(lambda x: opaque(x + 1, factor=3.0) + traceable(x))
    assert torch.equal(fast(X), (X + 1) * 3 + X * 2)
    assert called == []
    assert torch.equal(traceable(X), X * 2)
    assert called == ["[2.0]"]


def test_what_cannot_stand_for_a_function_is_refused():
    def original(x, y=1):
        return x

    with pytest.raises(ValueError, match="takes other parameters"):
        substitute_in_graph(original)(lambda x: x)
    with pytest.raises(TypeError, match="takes a function"):
        substitute_in_graph(3)
    substitute_in_graph(original, skip_signature_check=True)(lambda *given: given[0])
    with pytest.raises(ValueError, match="declared twice"):
        substitute_in_graph(original, skip_signature_check=True)(lambda x: x)
