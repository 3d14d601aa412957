"""Functions and methods of numpy on arrays whose numbers only the run knows: numpy computes, in one graph."""

import numpy as np
import pytest
import torch

X = torch.linspace(-2, 3, 12).reshape(3, 4)
N = torch.arange(12).reshape(3, 4) - 5


@pytest.mark.parametrize("given", [X, N, X.double(), N.to(torch.uint8), X > 0, X.t()], ids=str)
def test_reductions(whole, given):
    def f(x):
        a = x.numpy()
        return (
            a.sum(), a.max(axis=0), a.min(1, keepdims=True), a.mean(), a.std(0), np.var(a, axis=1), a.all(), a.any(axis=0),
            np.prod(a, 1), a.argmax(), np.argmin(a, axis=1), np.cumsum(a), np.median(a), np.percentile(a, 30), np.ptp(a, 0),
        )  # fmt: skip

    if given.dtype is torch.bool:
        with pytest.raises(TypeError):
            np.ptp(given.numpy(), 0)
        return
    whole(f, (given,), (given.flip(0),))


def test_numbers_go_on(whole):
    def f(x):
        a = x.numpy()
        total, count = a.sum(), len(a)
        mean = total / count
        return (
            mean,
            a - mean,
            np.asarray(total),
            torch.from_numpy(np.asarray(mean)),
            mean.dtype,
            total > 3,
            -total,
        )

    whole(f, (X,), (X + 1,))


@pytest.mark.parametrize("given", [X, N], ids=str)
def test_views_share_memory(whole, given):
    def f(x):
        a = x.numpy()
        t = a.T
        t[0] = 7
        row = a[1]
        row += 1
        flat = a.reshape(-1)
        flat[:2] = 3
        return (
            a,
            t,
            row,
            flat,
            a.transpose(1, 0),
            a[..., None].shape,
            a.swapaxes(0, 1),
            a.ravel(),
            a[:, 1::2],
            a.real,
        )

    whole(f, (given.clone(),), (given.clone(),))


def test_functions(whole):
    def f(x, y):
        a, b = x.numpy(), y.numpy()
        return (
            np.linalg.norm(a, axis=0), np.fft.fftshift(a), np.fft.fft(a).real, np.meshgrid(a[0], b[0]), a @ b.T, np.dot(a, b.T),
            np.linalg.inv(a[:, :3] + np.eye(3, dtype=np.float32) * 9), np.concatenate([a, b], axis=1), np.stack((a, b)),
            np.where(a > 0, a, b), np.clip(a, -1, 1), np.sort(a, axis=0), np.argsort(b), np.tile(a, 2), np.pad(a, 1), np.roll(a, 1),
            np.einsum("ij,kj->ik", a, b), np.take_along_axis(a, np.argsort(a, 0), 0), np.array([a, b]), np.isclose(a, b), np.diff(a),
            np.maximum(a, 0), np.outer(a[0], b[0]), np.array_split(a, 2, axis=1)[0].copy(), np.round(a, 1), np.sign(a), np.modf(a),
        )  # fmt: skip

    whole(f, (X, X * 2), (X - 1, X))


def test_numpy_promotes(whole):
    def f(x, i):
        a, b = x.numpy(), i.numpy()
        return (
            a + b, b / 2, a * np.float64(2), b + np.int8(3), b // 2, b % 3, b**2, a**2, b & 3, ~b, b << 1, a > b, b == 3,
            a * 2, 1 / a, b + True, np.add(a, b, dtype=np.float64), np.true_divide(b, b + 20), abs(b),
        )  # fmt: skip

    whole(f, (X + 5, N), (X + 6, N + 1))


def test_arrays_are_changed_in_place(whole):
    def f(a, b):
        a += b
        a[1:] *= 2
        a[0, 1] = -4
        a[a > 3] = 0
        a[...] -= a.max()
        made = np.zeros(4)
        made += 1
        made[1] = 5
        made[2:] = a[0, 2:]
        return a, b, made

    one, other = np.arange(12.0).reshape(3, 4), np.ones((3, 4))
    whole(f, (one, other), (one + 1, other * 2))
    whole(f, (one.astype(np.int64), other.astype(np.int64)))


def test_attributes(whole):
    def f(x):
        a = x.numpy()
        return a.itemsize, a.strides, a.nbytes, a.shape, a.ndim, a.size, a.dtype, a.T, a.imag, np.shape(a.T)

    whole(f, (X,), (X.t(),))


def test_an_imaginary_part_of_real_numbers_cannot_be_written_to(same):
    def f(x):
        part = x.numpy().imag
        flag = part.flags.writeable
        part[0] = 1
        return flag

    same(f, (X,))


def test_makers_take_the_form_of_a_tensor(whole):
    def f(x, kind):
        return np.ones_like(x, dtype=np.float64), np.full_like(x, 2.4, dtype=np.dtype(kind)), np.zeros_like(x)

    whole(f, (X, "float"), (X.int(), "float32"))


def test_rows_are_iterated(whole):
    def f(x):
        return [row * 2 for row in x.numpy()], [n + 1 for n in x.numpy()[0]]

    whole(f, (X,), (X + 1,))


def test_dtypes(whole):
    def f(x, n):
        bits = np.iinfo(np.int16).max
        return x + bits, np.dtype("float"), np.issubdtype(type(n), np.integer), np.dtype(np.int8).itemsize

    whole(f, (X, 3))


def test_what_data_tell_runs_in_python(same):
    def f(x):
        a = x.numpy()
        return (
            np.unique(a),
            np.nonzero(a),
            a[a > 0],
            a.tolist(),
            float(a.sum()),
            a.item(0),
            np.where(a > 0),
            a[N.numpy()[0] > -4],
        )

    same(f, (X,), (X + 1,))


def test_a_form_that_data_tell_only_later(same):
    def f(x):
        y = x + 1
        a = np.histogram_bin_edges(x.numpy().ravel(), bins="auto")
        return y, a

    same(f, (X,), (X * X * X,))


def test_functions_that_change_their_arguments(same):
    def f(a):
        known = np.array([1.0, np.nan])
        np.nan_to_num(known, copy=False)
        np.nan_to_num(a, copy=False, nan=3.0)
        return known, a

    same(f, (np.array([np.nan, 2.0]),))


def test_what_numpy_refuses(same):
    def f(x):
        a = x.numpy()
        try:
            a.reshape(5, 7)
        except ValueError as error:
            text = str(error)
        b = N.numpy().copy()
        try:
            b += a
        except TypeError as error:
            text += type(error).__name__
        try:
            a[7] = 1
        except IndexError as error:
            text += str(error)
        return text, b

    same(f, (X,))


def test_another_form_compiles_again(whole):
    def f(a):
        return a.sum(axis=0), np.sqrt(a.mean())

    whole(f, *[(np.ones((n, 3), dtype) * n * n,) for n in (2, 3, 5) for dtype in (np.float32, np.float64)])
