"""Storages of tensors: their sizes decide, they are emptied behind the graph, and are handed out as they are."""

import pytest
import torch

from dynamo_capture import CaptureError, optimize

X = torch.arange(6.0)


def _forward(graph_module, example_inputs):
    return graph_module.forward


def given():
    return X.clone()


@pytest.mark.parametrize("fullgraph", [False, True])
def test_a_storage_is_emptied(fullgraph):
    def program(x, log):
        y = torch.sin(x + 1)
        storage = x.untyped_storage()
        log.append(storage.size())
        storage.resize_(0)
        log.append(storage.nbytes())
        return torch.cos(y), storage, storage is x.untyped_storage()

    fast = optimize(_forward, fullgraph=fullgraph)(program)
    for x in (given(), given() * 2, torch.arange(8.0), torch.arange(3.0)):
        expected, size = torch.cos(torch.sin(x + 1)), x.untyped_storage().size()
        log = []
        y, storage, is_same = fast(x, log)
        assert torch.equal(y, expected)
        assert log == [size, 0]
        assert is_same
        assert storage is x.untyped_storage()
        assert storage.size() == 0


def test_sizes_decide(same):
    def program(x, y):
        if x.untyped_storage().size() // x.element_size() == 6:
            x = x + 1
        rest = y.untyped_storage().nbytes()
        return x * 2, rest, y[2:].untyped_storage().size()

    same(program, (X, X[1:]), (torch.ones(4), X.double()), (X[2:4], X), breaks=0)


def test_training_and_loops():
    def program(x, w, n):
        for _ in range(n):
            y = (x * w).sin()
            w = w + y.sum()
        x.untyped_storage().resize_(0)
        return y, w

    fast = optimize(_forward, fullgraph=True)(program)
    for n in (2, 3, 2):
        found = []
        for function in (program, fast):
            x, w = given() + n, torch.ones(6, requires_grad=True)
            y, last = function(x, w, n)
            assert x.untyped_storage().size() == 0
            found.append((y, last))
        torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)


def test_what_uses_the_memory_afterwards_ends_the_graph():
    def program(x, y):
        z = x + 1
        x.untyped_storage().resize_(0)
        z = z * y
        x.untyped_storage().resize_(24)
        x.copy_(z)
        return z

    fast = optimize(_forward)(program)
    for _ in range(2):
        x = given()
        z = fast(x, X)
        assert torch.equal(z, (X + 1) * X)
        assert torch.equal(x, z)
    with pytest.raises(CaptureError, match="CAP204"):
        optimize(_forward, fullgraph=True)(program)(given(), X)


def test_a_storage_as_an_argument(same):
    def program(storage, x):
        return storage.size() + 1, x + storage.nbytes(), storage

    same(program, (X.untyped_storage(), X), (torch.ones(3).untyped_storage(), X), breaks=0)
