"""What varies between calls becomes symbolic, or is read when the code runs: no new version for each value."""

import pytest
import torch

from dynamo_capture import graph_break, optimize, run_graph

X = torch.arange(12.0).reshape(4, 3)


def versions(function, *calls, **settings):
    """How many versions were compiled for these calls, each of which must give what eager gives."""
    fast = optimize(run_graph, **settings)(function)
    for call in calls:
        expected, actual = function(*call), fast(*call)
        assert type(expected) is type(actual)
        if isinstance(expected, torch.Tensor):
            assert torch.equal(expected, actual)
        else:
            assert expected == actual
    assert not fast.__fxstack_capture__.report.eager
    return len(fast.__fxstack_capture__.report.replacements)


@pytest.mark.parametrize(
    ("function", "most"),
    [
        (lambda x, n: x + n, 4),
        (lambda x, n: x * n - n * 2, 4),
        (lambda x, n: n * 3 + 1, 4),
        (lambda x, n: x.roll(n, 0), 12),
    ],
)
def test_integers_of_any_sign(function, most):
    calls = [(X, n) for n in (0, 1, -1, 7, -5, 3, -20, 12, 0, 1, -3, 100)]
    assert versions(function, *calls) <= most


def test_a_counter():
    class Counter:
        n = 0

    counter = Counter()
    counter.n = 0

    def f(x):
        counter.n += 1
        return x * 2

    fast = optimize(run_graph)(f)
    for _ in range(40):
        fast(X)
    assert counter.n == 40
    assert len(fast.__fxstack_capture__.report.replacements) <= 4


def test_nothing_is_generalised_where_sizes_are_static():
    assert versions(lambda x, n: x + n, *[(X, n) for n in range(2, 8)], dynamic=False) == 6


def test_functions_made_for_each_call():
    def apply(x, function):
        return function(x) + 1

    def call(x, n, fast):
        return fast(x, lambda t: t * n)

    fast = optimize(run_graph)(apply)
    for n in range(2, 12):
        assert torch.equal(call(X, n, fast), X * n + 1)
    assert len(fast.__fxstack_capture__.report.replacements) <= 3


def test_functions_with_defaults_made_for_each_call():
    def apply(x, function):
        return function(x), function

    fast = optimize(run_graph)(apply)
    for n in range(2, 12):

        def scaled(t, by=n, *, plus=n):
            return t * by + plus

        result, same = fast(X, scaled)
        assert torch.equal(result, X * n + n)
        assert same is scaled
    assert len(fast.__fxstack_capture__.report.replacements) <= 4


def test_closures_that_are_written_to():
    def apply(function, x):
        function(x)
        return function(x)

    fast = optimize(run_graph)(apply)
    for _ in range(5):
        count = 0

        def note(x):
            nonlocal count
            count += 1
            return x * count

        assert torch.equal(fast(note, X), X * 2)
        assert count == 2


def test_other_code_is_another_version():
    def apply(x, function):
        return function(x)

    fast = optimize(run_graph)(apply)
    for _ in range(3):
        assert torch.equal(fast(X, lambda t: t + 1), X + 1)
        assert torch.equal(fast(X, lambda t: t - 1), X - 1)


def test_a_function_with_attributes_is_taken_as_it_is():
    def apply(x, function):
        return function(x) * function.scale

    fast = optimize(run_graph)(apply)
    for n in range(2, 5):

        def marked(t):
            return t

        marked.scale = n
        assert torch.equal(fast(X, marked), X * n)


def _wide(width):
    """Columns of a matrix that is ``width`` wide."""
    return torch.arange(4.0 * width).reshape(4, width)[:, :3]


@pytest.mark.parametrize(
    ("name", "tensors"),
    [
        ("the rows of wider matrices", [_wide(n) for n in range(5, 20)]),
        ("a batch of one that grows", [torch.ones(1, n, 3) for n in range(5, 20)]),
        ("parts of a batch of one that grows", [torch.ones(1, n, 6)[..., :3] for n in range(5, 20)]),
        ("transposed", [torch.ones(2, n, 3).transpose(1, 2) for n in range(5, 20)]),
        ("expanded", [torch.ones(n, 1, 3).expand(n, 4, 3) for n in range(5, 20)]),
    ],
)
def test_strides_that_vary_with_sizes_or_alone(name, tensors):
    def f(x):
        return [x.shape[0] + x.stride(0), x.stride(-1), x.dim()]

    assert versions(f, *[(x,) for x in tensors]) == 2, name


@pytest.mark.parametrize(
    "other",
    [
        torch.ones(4, 6)[:, :3],
        torch.ones(1, 2).expand(4, 2),
        torch.ones(2, 4, 6)[:, :3],
        torch.ones(5, 3).t(),
    ],
)
def test_strides_that_followed_sizes_before_are_looked_at(other):
    def f(x):
        return x.stride(), x.is_contiguous(), x + 1

    compiled = optimize(run_graph)(f)
    for size in (3, 4), (2, 5):
        shape = (*size, 7)[-other.dim() :]
        assert compiled(torch.ones(shape))[:2] == f(torch.ones(shape))[:2]
    assert compiled(other)[:2] == f(other)[:2]


def test_what_a_resumed_loop_draws_has_one_version():
    def program(x):
        for place, number in enumerate((3, 5, 0, 1, 8)):
            x = x + number * place
            if x.sum() > 1e9:  # the graph ends there
                break
        return x

    assert versions(program, (X,)) == 3  # up to the first end, a round, the last one


@pytest.mark.parametrize(
    ("function", "sizes", "most"),
    [
        (lambda x, y: x.sum() + y.sum(), [(4, 7), (6, 6), (9, 5), (5, 8), (3, 3)], 2),
        (lambda x, y: x + y, [(4, 4), (6, 6), (9, 9)], 2),
        (lambda x, y: x + y, [(4, 1), (6, 6), (9, 9), (5, 5)], 2),
    ],
    ids=["equal by chance in the second call", "equal for a reason", "equal from the second call on"],
)
def test_sizes_that_are_equal_in_one_call(function, sizes, most):
    assert versions(function, *[(torch.arange(float(a)), torch.arange(float(b))) for a, b in sizes]) <= most


def test_strides_that_are_equal_in_one_call():
    base = torch.arange(400.0)
    calls = [(base.as_strided((3, 2), (a, b)),) for a, b in ((5, 9), (8, 8), (11, 6), (6, 12))]
    assert versions(lambda x: x.sum() + 1, *calls) == 2


def test_slices_of_any_bounds():
    primtorch_decomps = pytest.importorskip("primtorch_decomps")
    rows = torch.arange(60.0).reshape(20, 3)
    calls = [(rows, slice(start, stop)) for start, stop in ((0, 8), (0, 9), (0, 12), (0, 20), (0, 5))]
    assert versions(lambda x, s: x[s] * 2, *calls, operators=primtorch_decomps.LIBRARY) == 2

    def goes_on(x):
        window = slice(0, x.shape[0] // 2)
        graph_break()
        return x[window] * 2, window

    calls = [(rows[:n],) for n in (8, 10, 12, 14)]
    fast = optimize(run_graph, operators=primtorch_decomps.LIBRARY)(goes_on)
    for call in calls:
        (expected, window), (actual, found) = goes_on(*call), fast(*call)
        assert torch.equal(expected, actual)
        assert window == found
    assert len(fast.__fxstack_capture__.report.replacements) == 4


def test_a_slice_is_an_object():
    known = slice(None, 2)

    def program(x, given, others):
        assert given is known
        assert given == slice(None, 2, None)
        assert given in others
        return x[given] + given.stop, given, (given, others), [1, 2, 3][given]

    for call in ((X, known, [slice(1), known]), (X, known, [known])):
        result, same, (again, _), part = optimize(run_graph)(program)(*call)
        assert torch.equal(result, X[:2] + 2)
        assert (same, again, part) == (known, known, [1, 2])
        assert same is known
        assert again is known
    with pytest.raises(AssertionError):
        optimize(run_graph)(program)(X, slice(None, 2), [])


def test_a_state_that_lags_one_call():
    class Program(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.before = torch.zeros(4, 3)

        def forward(self, x):
            total = x.sum() + self.before.sum()
            self.before = x * 2
            return total

    plain, program, graphs = Program(), Program(), []
    fast = optimize(lambda graph, inputs: graphs.append(graph) or run_graph(graph, inputs))(program)
    for rows in (4, 6, 6, 8, 8, 10, 12, 12):
        x = torch.ones(rows, 3)
        assert torch.equal(fast(x), plain(x))
    assert len(graphs) <= 3
