"""Parts of numpy's arrays that the trace knows, arrays that torch's constructors are given, and ranges as indices."""

import numpy as np
import pytest
import torch

X = torch.arange(24.0).reshape(4, 6)
OFFSETS = np.array([0, 3, 5, 1])


def test_bounds_that_known_parts_tell(whole):
    def f(x):
        ends = np.cumsum([0] + [1, 2, 3])
        return [x[:, start:stop] for start, stop in zip(ends[:-1], ends[1:], strict=True)], ends[::2]

    whole(f, (X,))


def test_parts_of_known_arrays_share_their_memory(whole):
    def f(x):
        a = np.arange(6.0)
        b, c = a[1:4], a[::2]
        b[0] = 9.0
        a[2] = 5.0
        d = b[1:]
        d += 1
        return x * float(b[0] + c[1]), a, b, c, d, a.sum()

    whole(f, (X,))


def test_which_parts_share_memory(same):
    def f(x):
        a = np.arange(6.0)
        b, c = a[1:4], a[4:]
        return x + 1, np.shares_memory(a, b), np.shares_memory(b, c), np.may_share_memory(b.copy(), a)

    same(f, (X,))


@pytest.mark.parametrize("first", ["part", "whole"])
def test_parts_of_arrays_that_become_tensors(whole, first):
    def f(x):
        a = np.arange(6.0)
        b = a[1:4]
        torch.from_numpy(b if first == "part" else a).mul_(3)
        a[2] = -1.0
        b[2] = 7.0
        return x + torch.from_numpy(b)[:1], a, b, b.sum()

    whole(f, (X.double(),))


def test_parts_in_two_dimensions(whole):
    def f(x):
        a = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
        b = a[:, 1:]
        c = b[1]
        c[0] = 100.0
        return x * float(b.sum()), a, b, c, a[...], a[None, 1:]

    whole(f, (X,))


def test_parts_behind_a_break(same):
    def f(x):
        a = np.arange(6.0)
        b = a[1:4]
        print(end="")
        b += 1
        return x * float(a[1]), a, b

    same(f, (X,), graphs=2)


@pytest.mark.parametrize(
    "array", [OFFSETS, OFFSETS / 2, OFFSETS.astype(np.float32)], ids=["int", "double", "float"]
)
def test_tensors_of_arrays(whole, array):
    def f(x, a):
        return (
            x.new_tensor(a),
            x.new_tensor(data=a, dtype=torch.float64),
            x.new(a) + 1,
            torch.Tensor(a) + 1,
            torch.FloatTensor(a) + 1,
            torch.LongTensor(a) + 1,
            torch.DoubleTensor(np.sqrt(a)) + 1,
        )

    whole(f, (X, array), (X[:2], array))


def test_constructors_show_the_memory_of_arrays(whole):
    def f(x, a):
        shown, copied = torch.FloatTensor(a), x.new_tensor(a)
        by_method = x.new(a)
        a[1] = 5.0
        return shown + by_method, copied, a

    whole(f, (X, np.ones(3, np.float32)))


def test_numbers_that_are_multiplied_in_place(whole):
    def f(a):
        product = 1.0
        for number in a:
            product *= number
        first = a[0]
        kept = first
        first += 1
        return product, first, kept

    whole(f, (np.array([1.5, 2.0, 3.0]),), (np.array([1.5, 4.0, 3.0]),))


def test_ranges_as_indices(same):
    def f(x, columns):
        x = x.clone()
        picked = x[range(len(columns)), columns], x[range(3)], x[:, range(4, 0, -2)], x[range(0)]
        x[range(x.shape[0]), columns] = 1
        return *picked, x, x[list(range(x.shape[0])), 0]

    calls = [(torch.randn(n, 6), torch.arange(n) % 6) for n in (4, 5, 7)]
    same(f, *calls, graphs=2, breaks=0)


def test_a_range_that_data_end(same):
    def f(x, counts):
        return x[range(int(counts.sum())), 0]

    same(f, (X, torch.tensor([1, 2])), (X, torch.tensor([1, 0])), graphs=1, breaks=0)


def test_a_range_that_does_not_fit(same):
    def f(x):
        return x[range(9)]

    same(f, (X,))
