"""``torch.cond`` and ``torch.while_loop``, maps and scans: one graph, in which only what data choose runs.

Eager hands both to stock's compiler; the referee here is what their documentation says they mean, in plain Python.
"""

import copy
import random

import pytest
import torch
from torch import nn

from dynamo_capture import optimize
from dynamo_capture.foundation.errors import CaptureError
from fx_interface import verify
from fx_interface.regions import conditional, loop, scan

X = torch.arange(6.0, dtype=torch.float64).reshape(2, 3) - 1
W = torch.linspace(0.5, 1, 3, dtype=torch.float64)


def plain_cond(condition, on_true, on_false, operands=()):
    return on_true(*operands) if condition else on_false(*operands)


def plain_loop(condition, body, carried):
    while condition(*carried):
        carried = body(*carried)
    return tuple(t.clone() if isinstance(t, torch.Tensor) else t for t in carried)


class Checked:
    """Compares a captured program with plain Python; ``graphs`` are what was captured."""

    def __init__(self, monkeypatch):
        self.graphs = []
        self._monkeypatch = monkeypatch

    def backend(self, graph, inputs):
        verify(graph)
        self.graphs.append(graph)
        return graph.forward

    def targets(self):
        return [node.target for graph in self.graphs for node in graph.graph.nodes]

    def outcome(self, function, args):
        torch.manual_seed(0)
        given = [copy.deepcopy(arg) for arg in args]
        result = function(*given)
        leaves = torch.utils._pytree.tree_leaves(result)
        trained = [t for t in leaves if isinstance(t, torch.Tensor) and t.requires_grad]
        if trained:
            sum(t.sum() for t in trained).backward()
        grads = [
            torch.zeros_like(t) if t.requires_grad and t.grad is None else t.grad
            for t in given
            if isinstance(t, torch.Tensor)
        ]
        return result, grads, given

    def __call__(self, function, *calls, **options):
        fast = optimize(self.backend, fullgraph=True, **options)(function)
        for args in calls:
            with self._monkeypatch.context() as patch:
                patch.setattr(torch, "cond", plain_cond)
                patch.setattr(torch, "while_loop", plain_loop)
                expected = self.outcome(function, args)
            torch.testing.assert_close(self.outcome(fast, args), expected, rtol=1e-12, atol=1e-12)


@pytest.fixture
def checked(monkeypatch):
    return Checked(monkeypatch)


def both(trained=True):
    return [(X.clone().requires_grad_(trained),), ((-X).requires_grad_(trained),)]


def test_operands_and_closures(checked):
    def f(x):
        w = W * 2
        a = x * 3
        return torch.cond(a.sum() > 0, lambda t: t.sin() * w, lambda t: t - a, (x,)) + a

    checked(f, *both(), *both(trained=False))
    assert checked.targets().count(conditional) == 2  # with gradients and without


def test_structures_and_results_that_are_operands(checked):
    def f(x):
        def on_true(t, more):
            return {"a": t.exp(), "b": [t, more["k"] * 2, None]}

        def on_false(t, more):
            return {"a": more["k"] - t, "b": [t.cos(), t * 2, None]}

        found = torch.cond(x.sum() > 0, on_true, on_false, (x, {"k": x + 1}))
        found["b"][1].add_(1)
        return found, found["b"][2] is None

    checked(f, *both())


def test_nested_and_in_modules(checked):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.small, self.large = nn.Linear(3, 3).double(), nn.Linear(3, 3).double()

        def forward(self, x):
            def on_true(t):
                return torch.cond(t.max() > 3, self.large, lambda t: t.sin(), (t,))

            return torch.cond(x.sum() > 0, on_true, self.small, (x,))

    net = Net()
    checked(lambda x: net(x), *both(), (X.abs() / 9,))
    (graph,) = {id(g): g for g in checked.graphs[:1]}.values()
    assert any(node.target is conditional for node in graph.get_submodule("cond_true_1").graph.nodes)


def test_random_numbers_and_modes_inside(checked):
    def f(x):
        def on_true(t):
            with torch.no_grad():
                scale = torch.rand_like(t)
            return nn.functional.dropout(t * scale, 0.5)

        return torch.cond(x.sum() > 0, on_true, lambda t: t.clone(), (x,)) * torch.rand(
            3, dtype=torch.float64
        )

    checked(f, *both())


def test_what_python_knows_is_no_region(checked):
    def f(x, flag):
        a = torch.cond(flag, lambda t: t.sin(), lambda t: t.cos(), (x,))
        return torch.cond(x.shape[0] > 1, lambda t: t * 2, lambda t: t[0], (a,))

    checked(f, (X, True), (X, False), (X[:1], True))
    assert conditional not in checked.targets()


def test_sizes_that_differ(checked):
    def f(x):
        n = x.shape[0]
        return torch.cond(x.sum() > 0, lambda t: t * n, lambda t: t / n, (x,)).reshape(-1)[:n]

    checked(f, (X,), (torch.ones(5, 3),), (-torch.ones(7, 3),), (torch.ones(9, 3),))
    assert len(checked.graphs) <= 3


def test_branches_of_other_sizes(checked):
    def f(x):
        y = torch.cond(x.sum() > 0, lambda t: torch.cat([t, t]), lambda t: t.sin()[:1], (x,))
        return y * 2, y.shape, y.sum(0) * y.shape[0]

    checked(f, *both())
    checked(f, *both(False), dynamic=True)

    def of_data(x):
        kept, wide = torch.cond(
            x.sum() > 0, lambda t: (t[t > 0], t.flatten()), lambda t: (t.cos().flatten(), t[0].clone()), (x,)
        )
        again = torch.cond(kept.sum() > 1, torch.sin, torch.cos, (kept,))
        return again.sum(), wide.flip(0), torch.zeros(wide.shape[0] * 2)

    checked(of_data, *both())


def test_a_condition_on_a_number_from_data(checked):
    def f(x):
        count = int((x > 0).sum())
        return torch.cond(count > 2, lambda t: t.sin(), lambda t: t.cos(), (x,))

    from primtorch_decomps import LIBRARY

    checked(f, *both(), operators=LIBRARY)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.uint8, torch.complex64])
def test_a_condition_of_one_element_of_any_dtype(checked, dtype):
    def f(flag, x):
        return torch.cond(flag, lambda: x.sin(), lambda: x.cos())

    checked(f, *[(torch.full((1,), value, dtype=dtype), X) for value in (0, 1, 2)])
    assert conditional in checked.targets()


def test_keywords_and_the_operator_itself(checked):
    def f(x):
        a = torch.cond(operands=(x,), false_fn=lambda t: t.cos(), true_fn=lambda t: t.sin(), pred=x.sum() > 0)
        return a * torch.ops.higher_order.cond(a.sum() > 0, lambda t: t * 2, lambda t: t * 3, (a,))

    def plain(x):
        a = plain_cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (x,))
        return a * plain_cond(a.sum() > 0, lambda t: t * 2, lambda t: t * 3, (a,))

    fast = optimize(checked.backend, fullgraph=True)(f)
    for x in (X, -X):
        torch.testing.assert_close(fast(x), plain(x))
    assert checked.targets().count(conditional) == 2


def against(checked, function, plain, *calls, **options):
    fast = optimize(checked.backend, fullgraph=True, **options)(function)
    for args in calls:
        expected = checked.outcome(plain, args)
        torch.testing.assert_close(checked.outcome(fast, args), expected, rtol=1e-12, atol=1e-12)


def test_maps(checked):
    from functorch.experimental.control_flow import map as mapped

    def step(row, scale, more):
        return {"a": row["x"].sin() * scale * W, "b": [row["y"] + more["k"]]}

    def f(x, y):
        return mapped(step, {"x": x, "y": y}, 2.0, {"k": W + 1})

    def plain(x, y):
        rows = [step({"x": one, "y": other}, 2.0, {"k": W + 1}) for one, other in zip(x, y, strict=True)]
        return {"a": torch.stack([r["a"] for r in rows]), "b": [torch.stack([r["b"][0] for r in rows])]}

    Y = torch.linspace(0, 1, 15, dtype=torch.float64)
    trained = X.clone().requires_grad_()
    calls = [(X, X), (trained, X), (X.t().contiguous().t(), X), (Y.reshape(5, 3), Y.reshape(5, 3))]
    against(checked, f, plain, *calls, (Y[:12].reshape(4, 3), Y[:12].reshape(4, 3)))
    assert scan in checked.targets()
    assert len(checked.graphs) <= 5


def test_scans(checked):
    from torch._higher_order_ops.scan import scan as scanned

    def f(x, w):
        return scanned(lambda c, row: (c * w + row, (c - row, [row.exp()])), x[0], x, reverse=True)

    def plain(x, w):
        carried, rows = x[0], []
        for row in reversed(x.unbind(0)):
            rows.append((carried - row, row.exp()))
            carried = carried * w + row
        return carried, (
            torch.stack([a for a, _ in rows]).flip(0),
            [torch.stack([b for _, b in rows]).flip(0)],
        )

    trained = W.clone().requires_grad_()
    against(checked, f, plain, (X, W), (X, trained), (X.clone().requires_grad_(), W))
    assert scan in checked.targets()


def test_what_a_map_may_not_do():
    from functorch.experimental.control_flow import map as mapped

    assert refused(lambda x: mapped(lambda row: row.mul_(2), x)) == "CAP242"
    assert refused(lambda x: mapped(lambda row: SEEN.append(1) or row + 1, x)) == "CAP242"
    assert refused(lambda x: mapped(lambda row: 1, x)) == "CAP248"
    assert SEEN == []


class Doubled(torch._ops.HigherOrderOperator):
    """An operator of the program's own, with a kernel below autograd."""

    def __init__(self):
        super().__init__("fxstack_tests_doubled")

    def __call__(self, function, *args):
        return super().__call__(function, *args)


doubled = Doubled()


@doubled.py_impl(torch._C.DispatchKey.CompositeExplicitAutograd)
def doubled_dense(function, *args):
    return function(*args) * 2


@doubled.py_autograd_impl
def doubled_with_gradients(function, *args):
    raise RuntimeError("not differentiable")


def test_an_operator_of_the_program(checked):
    def f(x):
        return doubled(lambda t: t.sin() * WITH_GRADIENT, x) + 1

    fast = optimize(checked.backend, fullgraph=True)(f)
    result = fast(X)
    torch.testing.assert_close(result, f(X))
    assert result.requires_grad is f(X).requires_grad is False
    assert refused(f, X.clone().requires_grad_()) == "CAP230"


WITH_GRADIENT = torch.ones(3, dtype=torch.float64, requires_grad=True)


def test_loops(checked):
    def f(x):
        count, found = torch.while_loop(
            lambda i, t: (i < 6) & (t.sum() < 500),
            lambda i, t: (i + 1, t * t + W),
            (torch.tensor(0), x),
        )
        return found * 2, count

    checked(f, (X,), (-X,), (X * 100,), (X.clone().requires_grad_(),))
    assert loop in checked.targets()


def test_a_loop_that_comes_to_require_grad(checked):
    def f(x, w):
        return torch.while_loop(lambda t: t.sum() < 50, lambda t: (t * w + 1,), (x,))

    checked(f, (X, W.clone().requires_grad_()), (X * 100, W.clone().requires_grad_()))


def test_rounds_that_python_counts(checked):
    def f(x):
        return torch.while_loop(lambda i, t: i < 4, lambda i, t: (i + 1, t * 2), (0, x))

    checked(f, (X,))
    assert loop not in checked.targets()


SEEN = []


def refused(function, x=X):
    with pytest.raises(CaptureError) as raised:
        optimize(lambda graph, inputs: graph.forward, fullgraph=True)(function)(x)
    return raised.value.code


def test_what_a_branch_may_not_do():
    def changes(t):
        SEEN.append(1)
        return t + 1

    def writes(t):
        return t.mul_(2)

    def writes_outside(t):
        W.add_(1)
        return t + 1

    def raises(t):
        raise ValueError("no")

    def cond(on_true, condition=lambda x: x.sum() > 0):
        return lambda x: torch.cond(condition(x), on_true, lambda t: t - 1, (x,))

    def draws(t):
        return t * random.random()

    before = W.clone()
    assert refused(cond(draws)) == "CAP242"
    assert refused(cond(changes)) == "CAP242"
    assert refused(cond(writes)) == "CAP242"
    assert refused(cond(writes_outside)) == "CAP242"
    assert refused(cond(raises)) == "CAP248"
    assert refused(cond(lambda t: t[0])) == "CAP248"  # another number of dimensions
    assert refused(cond(lambda t: t.float())) == "CAP248"
    assert refused(cond(lambda t: t[:, :1].t().contiguous().t())) == "CAP248"  # other sizes, in another order
    assert refused(cond(lambda t: t.t().contiguous().t())) == "CAP248"
    assert refused(cond(lambda t: (t, t))) == "CAP248"
    assert refused(cond(lambda t: t + 1, lambda x: x > 0)) == "CAP248"
    assert SEEN == []
    assert torch.equal(W, before)


def test_what_a_loop_may_not_do():
    def looped(body, condition=lambda i, t: i < 3, first=None):
        return lambda x: torch.while_loop(condition, body, (torch.tensor(0) if first is None else first, x))

    assert refused(looped(lambda i, t: (i + 1, t[:1]))) == "CAP248"
    assert refused(looped(lambda i, t: (i + 1, t.float()))) == "CAP248"
    assert refused(looped(lambda i, t: (i + 1, t.mul_(2)))) == "CAP242"
    assert refused(looped(lambda i, t: (i + 1, t), lambda i, t: t.sum() < i, first=0)) == "CAP248"


def test_parts_that_data_choose_have_names_that_say_which_they_are():
    def chosen(x, y):
        def inner(x):
            return torch.cond(y, torch.sin, torch.cos, (x,))

        return torch.cond(x.sum() > 0, inner, torch.neg, (x,))

    graphs = []
    x = torch.ones(3)
    result = optimize(lambda graph, _: graphs.append(graph) or graph.forward)(chosen)(x, torch.tensor(True))
    assert torch.equal(result, torch.sin(x))
    names = {name for name, _ in graphs[0].named_modules()}
    assert names == {
        "",
        "cond_true_1",
        "cond_false_1",
        "cond_true_1.cond_true_0",
        "cond_true_1.cond_false_0",
    }


def test_what_bypasses_stocks_compiler_is_traced():
    from torch._higher_order_ops.wrap import dynamo_bypassing_wrapper

    def wrapper(function):
        return lambda *args: function(*args) * 2

    def bypassed(x):
        return dynamo_bypassing_wrapper(wrapper, torch.sin, x) + 1

    assert torch.equal(optimize(lambda graph, _: graph.forward, fullgraph=True)(bypassed)(X), bypassed(X))
