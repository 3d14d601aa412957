"""Tensor methods that the metadata answers."""

from __future__ import annotations

import pytest
import torch

from dynamo_capture import optimize
from dynamo_capture.semantics.tensors.methods import METHODS, method
from dynamo_capture.values import Const


def test_sizes(tx, tensor):
    assert tensor.call_method(tx, "size", [Const(-1)], {}).as_constant() == 3
    assert tensor.call_method(tx, "dim", [], {}).as_constant() == 2
    assert tx.output.calls == 0


def test_a_method_is_declared_once():
    assert "size" in METHODS
    with pytest.raises(ValueError, match="declared twice"):
        method("size")(lambda tx, owner, args, kwargs: None)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_views_are_not_detached_in_place(requires_grad):
    def program(x, log):
        log.append(1)
        x.view(-1).detach_()
        log.append(2)

    log: list[int] = []
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        optimize(lambda graph, inputs: graph)(program)(torch.ones(2, 2, requires_grad=requires_grad), log)
    assert log == [1]


def test_where_a_tensor_lies_is_not_known_if_only_data_tell():
    def f(x):
        return (x * 2)[x.argmax() :].storage_offset(), x * 2

    fast = optimize(lambda graph, inputs: graph.forward)(f)
    assert fast(torch.arange(4.0))[0] == 3
    assert fast.__fxstack_capture__.report.replacements[0][1].stopped is not None


@pytest.mark.parametrize("x", [torch.ones(2, 3), torch.tensor(1.0)])
def test_how_many_dimensions_are_dense_and_sparse(x):
    def f(x):
        return x + 1, x.dense_dim(), x.sparse_dim()

    fast = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(f)
    assert fast(x)[1:] == f(x)[1:]


def test_where_a_view_in_the_form_of_another_tensor_lies():
    def f(x, y):
        return x[1:].view_as(y).storage_offset(), x.view_as(x).storage_offset(), x * 2

    fast = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(f)
    assert fast(torch.arange(4.0), torch.ones(3))[:2] == (1, 0)


def test_memory_of_its_own_is_no_other():
    def f(x, y):
        made = x + 1
        return made.is_set_to(x), made.is_set_to(made), x.is_set_to(x), made.is_set_to(x * 2), made

    x = torch.ones(2)
    fast = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(f)
    assert fast(x, x)[:4] == f(x, x)[:4] == (False, True, True, False)


@pytest.mark.parametrize(
    "other", [lambda x, y: y, lambda x, y: x[:], lambda x, y: x.detach()], ids=["given", "view", "detached"]
)
def test_whether_existing_memory_is_shared_is_asked_in_python(other):
    def f(x, y):
        return x.is_set_to(other(x, y)), x + 1

    x = torch.ones(2)
    fast = optimize(lambda graph, inputs: graph.forward)(f)
    for y in (x.view(2), torch.ones(2)):
        assert fast(x, y)[0] is f(x, y)[0]


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_tensor_of_the_size_of_another_or_of_a_sequence(dynamic):
    def f(x):
        sized = x.new(x[0].size()), x.new(x.shape), x.new(torch.Size([2, 3])), x.new(torch.Size(()))
        filled = x.new((2,)), x.new([3, 4])
        return [y.fill_(7) for y in sized], filled, [x.new(2, 3).shape, x.new().shape], x + 1

    fast = optimize(lambda graph, inputs: graph.forward, fullgraph=True, dynamic=dynamic)(f)
    for x in (torch.ones(5, 4), torch.ones(3, 6, dtype=torch.float64)):
        torch.testing.assert_close(fast(x), f(x), rtol=0, atol=0)


@pytest.mark.skipif(torch.accelerator.is_available(), reason="memory may be pinned: a break")
def test_the_device_that_another_library_would_see():
    def f(x):
        here, there = x.__dlpack_device__(), (x + 1).__dlpack_device__()
        return x * int(here[0]) + there[1], here, there

    fast = optimize(lambda graph, inputs: graph.forward, fullgraph=True)(f)
    for x in (torch.ones(2), torch.ones(3, dtype=torch.float64)):
        (made, *devices), (expected, *known) = fast(x), f(x)
        assert made.equal(expected)
        assert devices == known
        assert [type(part) for part in devices[1]] == [type(part) for part in known[1]]


@pytest.mark.parametrize(
    "program",
    [
        lambda x: (x < 1).type(torch.Tensor),
        lambda x: x.type(torch.LongTensor),
        lambda x: (x * 2).type(dtype=torch.IntTensor),
        lambda x: x.type(torch.HalfTensor, True),
        lambda x: x.type(torch.FloatTensor) is x,
        lambda x: x.type("torch.DoubleTensor"),
        lambda x: x.type(torch.float64),
    ],
)
def test_types_are_told_by_classes_of_tensors(program):
    captured = optimize(lambda graph, examples: graph.forward, fullgraph=True)(program)
    found, expected = captured(torch.arange(3.0)), program(torch.arange(3.0))
    assert found is True or (found.dtype, found.tolist()) == (expected.dtype, expected.tolist())


@pytest.mark.parametrize("refused", [object, torch.nn.Parameter])
def test_types_that_torch_refuses(refused):
    captured = optimize(lambda graph, examples: graph.forward)(lambda x: x.type(refused))
    with pytest.raises(ValueError, match="invalid type"):
        captured(torch.arange(3.0))
