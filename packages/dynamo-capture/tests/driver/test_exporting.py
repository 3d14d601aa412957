"""A function as one graph, or every reason why it is not one."""

import pytest
import torch

from dynamo_capture import CaptureError, ExportError, export
from fx_interface import verify

X = torch.arange(6.0).reshape(2, 3)


def test_one_graph_with_signature_and_guards():
    linear = torch.nn.Linear(3, 4)

    def f(x, scale):
        return torch.relu(linear(x)) * scale, x + 1

    exported = export(f)(X, 3)
    verify(exported.graph_module)
    sources = [declared.source.expression for declared in exported.signature.inputs]
    assert sources[0] == "x"
    assert len(sources) == 3
    assert len(exported.signature.outputs) == 2
    assert any(getattr(guard, "expected", None) == 3 for guard in exported.guards)
    result, plus = exported.graph_module(X, *[dict(linear.named_parameters())[n] for n in ("weight", "bias")])
    assert torch.equal(result, f(X, 3)[0])
    assert torch.equal(plus, X + 1)


def test_modules_and_dynamic_sizes():
    exported = export(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh()), dynamic=False)(X)
    assert [node.op for node in exported.graph_module.graph.nodes].count("placeholder") == 3
    moving = export(lambda x: x.flatten() + x.shape[0], dynamic=True)(X)
    assert any(declared.kind.name == "SYMBOL" for declared in moving.signature.inputs)


def test_every_break_is_listed_with_its_line():
    def inner(x):
        return x + x.max().tolist()

    def f(x):
        y = inner(x)
        if y.sum() > 0:
            return y * 2
        return y

    with pytest.raises(ExportError) as caught:
        export(f)(X)
    error = caught.value
    assert isinstance(error, CaptureError)
    assert [b.code for b in error.breaks] == ["CAP201", "CAP201"]
    lines = [b.where.line for b in error.breaks]
    assert lines == [inner.__code__.co_firstlineno + 1, f.__code__.co_firstlineno + 2]
    for number in lines:
        assert f":{number}" in str(error)


def test_a_function_without_tensors_is_no_graph():
    with pytest.raises(ExportError, match="no tensor operation"):
        export(lambda n: n + 1)(2)


def test_what_the_function_raises_passes():
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        export(f)(X)
