"""Sparse tensors in coordinate layout: made, given, computed with and given back in one graph."""

import pytest
import torch
from torch import nn

from dynamo_capture import optimize
from primtorch_decomps import LIBRARY

PLACES = torch.tensor([[0, 1, 2, 2, 3, 2], [1, 0, 3, 1, 2, 3]])
STORED = torch.arange(1.0, 7.0)
X = torch.arange(12.0).reshape(4, 3).sin()


def sparse(stored=STORED, places=PLACES, size=(4, 4)):
    return torch.sparse_coo_tensor(places.clone(), stored.clone(), size)


def trained(tensor):
    return tensor.clone().requires_grad_()


def captured(function, graphs=1):
    """``function``, whole; its graphs are counted when ``check`` is called."""
    made = []

    def backend(graph_module, inputs):
        made.append(graph_module)
        return graph_module.forward

    compiled = optimize(backend, operators=LIBRARY, fullgraph=True)(function)

    def check():
        assert len(made) == graphs

    return compiled, check


def compare(function, *makers, graphs=1, calls=2):
    """Results, layouts and gradients of a function whose arguments ``makers`` make."""
    compiled, check = captured(function, graphs)
    for _ in range(calls):
        runs = []
        for run in (function, compiled):
            given = [make() for make in makers]
            results = run(*given)
            results = results if isinstance(results, tuple) else (results,)
            total = [one.to_dense().square().sum() for one in results if one.requires_grad]
            if total:
                sum(total).backward()
            tensors = [*results, *(one.grad for one in given if one.requires_grad)]
            runs.append(tensors)
        for found, expected in zip(runs[1], runs[0], strict=True):
            if expected is None:
                assert found is None
                continue
            assert found.layout is expected.layout
            assert found.requires_grad is expected.requires_grad
            if expected.is_sparse:
                assert found.is_coalesced() is expected.is_coalesced()
            torch.testing.assert_close(found.to_dense(), expected.to_dense())
    check()


@pytest.mark.parametrize(
    "function",
    [
        lambda i, v, x: torch.sparse.mm(torch.sparse_coo_tensor(i, v * 2, (4, 4)), x),
        lambda i, v, x: (torch.sparse_coo_tensor(i, v, torch.Size([4, 4])) @ x).relu(),
        lambda i, v, x: torch.sparse_coo_tensor(indices=i, values=v, size=(4, 4)).mv(x[:, 0]),
        lambda i, v, x: torch.sparse_coo_tensor(i, v, (4, 4)).t() @ x,
        lambda i, v, x: torch.sparse.sum(torch.sparse_coo_tensor(i, v, (4, 4))) * x,
        lambda i, v, x: torch.sparse_coo_tensor(i, v, (4, 4)).to_dense() @ x,
        lambda i, v, x: -2 * torch.sparse_coo_tensor(i, v, (4, 4)) / 3,
        lambda i, v, x: torch.sparse_coo_tensor(i, v, (4, 4)).coalesce(),
        lambda i, v, x: torch.sparse_coo_tensor(i, v, (4, 4)).coalesce().indices() + 1,
        lambda i, v, x: torch.sparse_coo_tensor(i, v, (4, 4)).coalesce().values().sin(),
        lambda i, v, x: torch.sparse_coo_tensor(i, v, (4, 4)).detach() @ x,
        lambda i, v, x: torch.sparse.mm((x @ x.t()).relu().to_sparse(), x),
        lambda i, v, x: torch.sparse_coo_tensor(i[:, :1], v[:1], (4, 4)),
        lambda i, v, x: torch.sparse.sum(torch.sparse_coo_tensor(i, v, (4, 4)), dim=1),
        lambda i, v, x: torch.sparse.sum(torch.sparse_coo_tensor(i, v, (4, 4)), -2).to_dense() + x[:, 0],
        lambda i, v, x: torch.sparse_coo_tensor(i, v, (4, 4)) + torch.sparse_coo_tensor(i.flip(0), v, (4, 4)),
        lambda i, v, x: torch.sparse_coo_tensor(i, v, (4, 4)).detach().coalesce().tanh().abs(),
        lambda i, v, x: torch.sparse_coo_tensor(i[:1], x.repeat(2, 1)[:6], (4, 3)).to_dense(),
    ],
)
def test_made_inside(function):
    compare(function, PLACES.clone, lambda: trained(STORED), lambda: trained(X))


@pytest.mark.parametrize("is_coalesced", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        lambda a, x: torch.sparse.mm(a, x).relu(),
        lambda a, x: (a @ x, a),
        lambda a, x: a.to_dense() @ x,
        lambda a, x: (a * 2, a.T @ x),
        lambda a, x: (a + a, torch.sparse.sum(a, 0)),
        lambda a, x: a._values() * x.sum() + a._nnz() + a.sparse_dim() + a.size(0),
        lambda a, x: a @ x if a.is_coalesced() and a.layout is torch.sparse_coo else x * 2,
    ],
)
def test_given(function, is_coalesced):
    compare(function, lambda: sparse().coalesce() if is_coalesced else sparse(), lambda: trained(X))


def test_a_buffer_of_a_module():
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("adjacency", sparse().coalesce())
            self.linear = nn.Linear(3, 2)

        def forward(self, x):
            return torch.sparse.mm(self.adjacency, self.linear(x)).log_softmax(1)

    layer = Layer()
    compiled, check = captured(layer)
    torch.testing.assert_close(compiled(X), layer(X))
    check()


def test_other_sizes_and_other_layouts():
    def f(a, x):
        return a @ x

    made = []

    def backend(graph_module, inputs):
        made.append(graph_module)
        return graph_module.forward

    compiled = optimize(backend, operators=LIBRARY)(f)
    for size in (4, 7, 9, 11):
        places = torch.arange(2 * size).reshape(2, size) % size
        a = sparse(torch.ones(size), places, (size, size))
        torch.testing.assert_close(compiled(a, torch.ones(size, 3)), a @ torch.ones(size, 3))
    assert len(made) == 2
    a = sparse().coalesce()
    for other in (a, a.to_dense(), a.to_sparse_csr(), trained(a), a.double().to_dense().float()):
        torch.testing.assert_close(compiled(other, X), other @ X)


def test_memory_is_shared():
    def written(i, v):
        a = torch.sparse_coo_tensor(i, v, (4, 4))
        v.mul_(2)
        return a.to_dense(), a

    def inside(a):
        a._values().mul_(2)
        return a.to_dense()

    compiled, _ = captured(written)
    one, other = STORED.clone(), STORED.clone()
    for found, expected in zip(compiled(PLACES, one), written(PLACES, other), strict=True):
        assert torch.equal(found.to_dense(), expected.to_dense())
    assert torch.equal(one, other)
    compiled, _ = captured(inside)
    a = sparse()
    assert torch.equal(compiled(a), sparse().to_dense() * 2)
    assert torch.equal(a.to_dense(), sparse().to_dense() * 2)


def test_the_same_object_goes_on():
    compiled, _ = captured(lambda a, x: (a, a @ x))
    a = sparse()
    assert compiled(a, X)[0] is a


def test_made_without_gradients(same):
    def f(i, v, x):
        with torch.no_grad():
            a = torch.sparse_coo_tensor(i, v, (4, 4))
        b = torch.sparse_coo_tensor(i, v, (4, 4))
        return a.requires_grad, b.requires_grad, a @ x, b @ x

    same(f, (PLACES, trained(STORED), X))


def test_what_is_refused_raises_as_eager_does(same):
    def sizes(x):
        return sparse().to_dense() @ x, torch.sparse.mm(sparse(), torch.ones(5, 3))

    def kinds(x):
        return torch.sparse.mm(sparse(), x.double())

    def parts(x):
        return sparse().values()

    def lengths(x):
        return torch.sparse_coo_tensor(PLACES, STORED[:4], (4, 4))

    for function in (sizes, kinds, parts, lengths):
        same(function, (X,))


def test_what_is_not_known_runs_in_python():
    def f(a, x):
        y = x * 2
        with torch.autocast("cpu", torch.bfloat16):
            z = a @ y
        return torch.sparse.sum(a, dim=(1,)).to_dense(), z, (a - a).to_dense() + 1, torch.sparse.softmax(a, 1)

    compiled = optimize(lambda graph_module, inputs: graph_module.forward, operators=LIBRARY)(f)
    for found, expected in zip(compiled(sparse(), X), f(sparse(), X), strict=True):
        assert found.dtype is expected.dtype
        torch.testing.assert_close(found.to_dense(), expected.to_dense())


def test_sizes_that_vary_are_read_for_the_tensor_that_is_made_again(same):
    def f(values, dense):
        made = torch.sparse_coo_tensor(PLACES, values, (dense.shape[0], dense.shape[0] + 1))
        return dense * 2, made

    made = [(torch.randn(PLACES.shape[1]), torch.randn(rows, 3)) for rows in (4, 5, 9)]
    same(f, *made, operators=LIBRARY)
