"""Tensors of the program's classes that a captured function makes, and where in their memory tensors begin."""

import pytest
import torch
from torch.testing._internal.two_tensor import TwoTensor

from dynamo_capture import mark_dynamic, optimize

X = torch.arange(12.0).reshape(3, 4)


class Plain(torch.Tensor):
    pass


class Made(torch.Tensor):
    def __new__(cls, data, tag=0):
        return super().__new__(cls, data)

    def __init__(self, data, tag=0):
        self.tag = tag


class Stored(torch.nn.Parameter):
    """Holds data in a format that only its class knows, as quantized checkpoints do."""

    def __new__(cls, data, requires_grad=False, kind=None):
        return torch.Tensor._make_subclass(cls, data, requires_grad)

    def __init__(self, data, requires_grad=False, kind=None):
        self.kind = kind

    def plain(self):
        return torch.Tensor._make_subclass(torch.Tensor, self, self.requires_grad)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        kind = next((arg.kind for arg in args if isinstance(arg, Stored)), None)
        return cls(result, kind=kind) if isinstance(result, torch.Tensor) else result


def described(value):
    if isinstance(value, (tuple, list)):
        return [one for item in value for one in described(item)]
    if isinstance(value, TwoTensor):
        return [TwoTensor, value.storage_offset(), value.requires_grad, *described((value.a, value.b))]
    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunctionSubclass():
            content = value.detach().as_subclass(torch.Tensor).tolist()
        kept = {name: one for name, one in vars(value).items() if not name.startswith("_")}
        return [type(value), value.requires_grad, value.is_leaf, value.storage_offset(), content, kept]
    return [value]


def forward(graph, inputs):
    return graph.forward


def check(function, *makers, **options):
    """Results, gradients and what became of the arguments are eager's, in one graph."""
    fast = optimize(forward, fullgraph=True, **options)(function)
    for make in makers:
        given, expected_of = make(), make()
        result, expected = fast(given), function(expected_of)
        assert described(result) == described(expected)
        if isinstance(expected, torch.Tensor) and expected.requires_grad:
            result.sum().backward()
            expected.sum().backward()
            assert torch.equal(given.grad, expected_of.grad)
        assert described(given) == described(expected_of)


def plain():
    return X.clone()


def trained():
    return X.clone().requires_grad_()


def test_a_class_that_is_called_with_a_tensor():
    def f(x):
        made = Plain(x + 1)
        made.label = 42
        return made, made * made.label, torch.Tensor(x)

    check(f, plain, trained)
    check(lambda x: Made(x * 2, tag=3) * 2, plain, trained)
    check(lambda x: Made(Made(x, 1), 2), plain)
    x = plain()
    assert optimize(forward, fullgraph=True)(lambda t: Plain(t))(x)._base is x


def test_subclasses_in_the_same_memory_without_a_history():
    def f(x):
        y = torch.Tensor._make_subclass(Plain, x)
        z = torch.Tensor._make_subclass(torch.Tensor, x)
        x += 1
        y += 2
        z += 3
        return x * y + z, y

    check(f, plain)
    check(lambda x: torch.Tensor._make_subclass(data=x * 2, cls=Plain), plain, trained)
    result = optimize(forward, fullgraph=True)(lambda x: torch.Tensor._make_subclass(Plain, x))(X)
    assert (result._is_view(), result.data_ptr()) == (False, X.data_ptr())


def test_a_class_that_keeps_what_it_knows_of_its_data():
    def f(x):
        stored = Stored(x, kind="four bits")
        return stored.plain() * 2, stored + 1, (stored + 1).kind

    check(f, plain)


def test_where_a_tensor_begins():
    def f(x):
        y = x * 2
        found = [x, x[1], y, y[1:, 2], y.t(), y.flatten()[3:], y.split(2, 1)[1], y.unbind()[1]]
        return [one.storage_offset() for one in found], x.detach()[1].unsqueeze(0).storage_offset()

    check(f, plain, lambda: torch.zeros(50)[7:19].view(3, 4), lambda: torch.zeros(50)[8:20].view(3, 4))
    check(f, lambda: X[1:])

    def varying(x):
        y = (x * 2).t()
        found = [x.select(0, 1), y, y.reshape(-1), y.narrow(1, 2, 1), x.select(1, 0).unsqueeze(0)]
        return [one.storage_offset() for one in found]

    check(varying, plain, lambda: torch.ones(5, 6), lambda: torch.ones(5, 6)[:, 1:], dynamic=True)


def pairs(make):
    return [
        lambda: TwoTensor(make(), make() + 1),
        lambda: TwoTensor(make(), make())[1:],
        lambda: _narrowed(make),
    ]


def _narrowed(make):
    return TwoTensor(make(), make()).narrow(1, 1, 2)


@pytest.mark.parametrize("dynamic", [None, True, False])
def test_pairs_of_tensors_that_say_where_they_begin(dynamic):
    def f(pair):
        y = pair.clone()
        return y.view(y.shape[1], y.shape[0]) * 2, pair.sin() + y, y[1:]

    check(f, *pairs(plain), dynamic=dynamic)


def test_sizes_of_what_is_wrapped_vary_with_those_of_the_wrapper():
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    for dynamic in (True, False):
        fast = optimize(backend, fullgraph=True, dynamic=dynamic)(lambda pair: pair.sin())
        for size in (3, 5, 7):
            pair = TwoTensor(torch.ones(size, 4), torch.ones(size, 4))
            if not dynamic and size == 3:
                mark_dynamic(pair, 0)
            assert described(fast(pair)) == described(pair.sin())
        assert len(graphs) == 1
        graphs.clear()
