"""Arrays and numbers of numpy in programs around tensors."""

import types

import numpy as np
import pytest
import torch
from torch import nn

X = torch.arange(6.0).reshape(2, 3) + 1


def test_functions_of_known_numbers(whole):
    def f(x):
        n, k = np.ceil(x.shape[1] / 2), np.clip(5, 0, 3)
        flat = x.reshape(np.prod(x.shape))
        return flat, x[:, : int(n)] + np.maximum(x.shape[0], 2) + k, x / np.sqrt(x.shape[-1]), np.pi * x

    whole(f, (X,), (X[:, :2],))


def test_numbers_are_constants_that_are_guarded(whole):
    def make():
        class Scaled(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale, self.count = np.float64(0.5), np.int64(3)

            def forward(self, x, scale):
                self.scale = self.scale * 2 if scale is None else scale
                return x * self.scale + self.count, -self.scale, float(self.scale) > 0.7, self.count.dtype

        return Scaled()

    whole.made(make, (X, None), (X, None), (X, np.float32(3)), (X, 3.0), (X, np.float64(3)))


def test_a_number_that_varies_is_not_worth_a_version_for_each(same):
    def f(x, v):
        return x * v

    same(f, *((X, np.float64(n)) for n in range(12)))
    assert len(same.capture.report.replacements) < 9


@pytest.mark.parametrize("number", [np.float16(2), np.float32(2), np.float64(2), np.int32(2), np.uint8(2)])
def test_torch_takes_numbers_as_eager_does(same, number):
    def f(x, i):
        return x * number, number * x, x < number, i + number, number / i, torch.full((2,), number), \
            torch.tensor(number), torch.as_tensor(number) + x  # fmt: skip

    same(f, (X, X.int()))


def test_arrays_of_known_numbers(whole):
    def f(x):
        frequencies = np.arange(3, dtype=np.float32) * np.pi
        table = np.linspace(0, 1, 3).astype(np.float32)
        middle = table[1]
        return x * torch.from_numpy(frequencies) + torch.tensor(table), frequencies, frequencies.shape, middle

    whole(f, (X,), (X,))


def test_an_array_that_is_returned_is_made_anew(same):
    def make():
        kept = []

        def f(x):
            made = np.zeros(3)
            kept.append(made)
            return x + 1, made, kept[0] is made

        def run(x):
            found = f(x)
            found[1][0] += 1
            return found, len(kept)

        return run

    same.made(make, (X,), (X,), (X,))


def test_views_and_changes_of_arrays(same):
    def f(x):
        a = np.arange(4.0)
        b = a[1:]
        b[0] = 7
        a += 1
        np.copyto(a, a * 2)
        return x + torch.from_numpy(a), b

    same(f, (X[:, :1],), (X[:, :1],))


def test_arrays_as_arguments(whole):
    def f(x, a, i):
        return x * torch.from_numpy(a), torch.as_tensor(a).sum(), torch.tensor(a) + 1, x[:, i], a.shape, a.ndim, \
            a.dtype, len(a)  # fmt: skip

    one = np.ones((2, 3), dtype=np.float32)
    whole(
        f,
        (X, one, np.array([0, 2])),
        (X, one * 3, np.array([1, 1])),
        (X, one.astype(np.float64), np.array([0])),
    )


def test_a_tensor_shares_memory_with_its_array(same):
    def f(x, a):
        t = torch.from_numpy(a)
        t.add_(x)
        copy = torch.tensor(a)
        copy.mul_(2)
        return t * 2, a, torch.from_numpy(a) + 1

    same(f, (X, np.ones((2, 3), np.float32)), (X, np.zeros((2, 3), np.float32)))


def test_an_array_of_the_program_that_changes(same):
    def make():
        table = np.array([1.0, 2.0, 3.0], dtype=np.float32)

        def f(x):
            return x * torch.tensor(table)

        def run(x):
            table[0] += 1
            return f(x)

        return run

    same.made(make, (X,), (X,))


def test_tensors_seen_as_arrays(whole):
    def f(x):
        a = np.sqrt(x.numpy()) * 2 + x.detach().numpy()
        return torch.from_numpy(a) - 1, a, (x + 1).numpy(), a > 3, a.astype(np.float64), -a

    whole(f, (X,), (X + 1,))


def test_what_numpy_computes_otherwise_than_torch(same):
    def f(x, i):
        a, b = x.numpy(), i.numpy()
        return a + b, b / 2, np.mean(a), a.sum(), a * np.float64(2), np.maximum(a, 2), a[0], a.T

    same(f, (X, X.int()))


def test_an_array_of_a_tensor_that_requires_grad(same):
    def f(x):
        try:
            return (x * 2).numpy()
        except RuntimeError as error:
            return x, str(error)

    same(f, (X.clone().requires_grad_(),))


def test_classes_and_dtypes_of_numpy(whole):
    dtypes = {np.dtype("float32"): torch.float32, np.dtype("float64"): torch.float64}

    def f(x, v):
        if isinstance(v, (int, float, np.integer, np.floating)):
            return x * v
        if isinstance(v, np.ndarray):
            return x.to(dtypes[v.dtype]) + torch.as_tensor(v)
        return x

    whole(f, (X, 2), (X, np.float32(3)), (X, np.ones(3, np.float32)), (X, np.ones(3)), (X, None))


ARRAYS = [np.ones((2, 3), np.float32), np.array([0, 1]), np.array([1.0, 0.0])]
TAKEN_BY_TORCH = [
    lambda x, o: x.add(o),
    lambda x, o: torch.sin(o),
    lambda x, o: torch.cat([x, o]),
    lambda x, o: x.index_select(0, o),
    lambda x, o: x[o],
    lambda x, o: x[:, o],
    lambda x, o: x + o,
]


@pytest.mark.parametrize("use", TAKEN_BY_TORCH)
def test_torch_takes_arrays_where_it_does_in_eager_only(same, use):
    def f(x, o):
        try:
            return use(x, o), x + 1
        except Exception as error:
            return str(error), x + 1

    same(f, *((X, array) for array in ARRAYS))


def test_an_array_of_a_tensor_that_requires_grad_where_gradients_are_off(same):
    """Torch refuses it where gradients are on."""

    def program(x):
        with torch.no_grad():
            free = x.numpy() + 1
        try:
            x.numpy()
        except RuntimeError as error:
            return free, x.numpy(force=True) + 1, str(error), x * 2
        return free, None, None, x

    same(program, (torch.ones(2, requires_grad=True),), (torch.ones(2),))


def test_iterators_read_a_row_when_they_come_to_it(same):
    def f(x):
        y = x * 1
        rows, back, known = iter(y.numpy()), reversed(y.numpy()), reversed(np.arange(3))
        begun = next(rows), next(back), next(known)
        y.add_(10)
        return begun, next(rows), back.__length_hint__(), rows, back, known, type(back)

    same(f, (X,), (X[:1].repeat(4, 1),), (X[:, 0],))


def test_what_is_reversed_keeps_its_class(same):
    def f(x):
        proxy = types.MappingProxyType({"a": 1, "b": 2})
        return reversed(proxy), next(reversed(proxy)), reversed(np.arange(2)), x + 1

    same(f, (X,))
