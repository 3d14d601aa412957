"""``observe`` and ``differences``: each kind of difference that a program could notice is noticed, and no other."""

from __future__ import annotations

import logging
import math
import sys
import warnings
import weakref
from collections import OrderedDict, deque
from functools import partial

import pytest
import torch
from torch.testing._internal.two_tensor import TwoTensor

from fx_interface.conformance.outcomes import differences, observe, rounding, same_bits


def _shared(x):
    y = x * 2
    return y, y.view(-1)


def _apart(x):
    y = x * 2
    return y, (x * 2).view(-1)


def _written(x):
    return x.add_(1), None


def _written_twice(x):
    return x.add_(0).add_(1), None


def _raises(x):
    raise ValueError("bad")


def _raises_from(x):
    try:
        raise KeyError(1)
    except KeyError as error:
        raise ValueError("bad") from error


def _prints(x):
    print("a")
    return x


def _warns(x):
    warnings.warn("a", stacklevel=1)
    return x


def _leaks_a_mode(x):
    torch.set_grad_enabled(False)
    return x


def _same_list(x):
    made = []
    return made, made


def _moved(made, key):
    made.move_to_end(key)
    return made


def _closing(n):
    return lambda: n


def _keywords_that_are_held(x):
    made = partial(dict, k=1)
    return made, made.keywords


def _noted(tensor, note):
    tensor.note = note
    return tensor


def _prints_to_stderr(x):
    print("a", file=sys.stderr)
    return x


def _logs(x):
    logging.getLogger("program").warning("a")
    return x


PAIRS = {
    "memory": (_shared, _apart),
    "version": (_written, _written_twice),
    "exception": (_raises, lambda x: x),
    "cause": (_raises, _raises_from),
    "output": (_prints, lambda x: x),
    "warning": (_warns, lambda x: x),
    "mode": (_leaks_a_mode, lambda x: x),
    "object": (_same_list, lambda x: ([], [])),
    "small number": (lambda x: x + 1e-6, lambda x: x),
    "large integer": (lambda x: torch.tensor(2**53), lambda x: torch.tensor(2**53 + 1)),
    "imaginary part": (lambda x: torch.tensor(1 + 1j), lambda x: torch.tensor(1 + 5j)),
    "negative zero": (lambda x: torch.tensor(0.0), lambda x: torch.tensor(-0.0)),
    "zero": (lambda x: 0.0, lambda x: -0.0),
    "type of a number": (lambda x: 1, lambda x: True),
    "strides": (lambda x: torch.zeros(2, 3), lambda x: torch.zeros(3, 2).t()),
    "dtype": (lambda x: x.double(), lambda x: x),
    "no gradient": (lambda x: x.clone().requires_grad_(), lambda x: x.clone()),
    "history": (lambda x: x.clone().requires_grad_() * 1, lambda x: x.clone().requires_grad_()),
    "container": (lambda x: (x,), lambda x: [x]),
    "keys": (lambda x: {1: x}, lambda x: {2: x}),
    "order of an ordered dict": (
        lambda x: _moved(OrderedDict(a=1, b=2), "a"),
        lambda x: _moved(OrderedDict(a=1, b=2), "b"),
    ),
    "what a function closes over": (lambda x: _closing(1), lambda x: _closing(2)),
    "keywords of a partial": (lambda x: partial(len, k=1), lambda x: partial(len, k=2)),
    "dict of a partial": (_keywords_that_are_held, lambda x: (partial(dict, k=1), {"k": 1})),
    "receiver of a builtin method": (lambda x: [1].append, lambda x: [2].append),
    "dtype as a value": (lambda x: torch.float32, lambda x: torch.float64),
    "slice of tensors": (lambda x: slice(x), lambda x: slice(x + 1)),
    "rest of an iterator": (lambda x: iter([1, 2]), lambda x: iter([2])),
    "rest of a zip": (lambda x: zip([1, 2], [3, 4], strict=False), lambda x: zip([1, 2], [4], strict=False)),
    "state of a generator": (lambda x: torch.Generator().manual_seed(1), lambda x: torch.Generator()),
    "length of a deque": (lambda x: deque([1], 1), lambda x: deque([1], 2)),
    "dead reference": (lambda x: weakref.ref(x), lambda x: weakref.ref(x.clone())),
    "attribute of a tensor": (lambda x: _noted(x.clone(), 1), lambda x: _noted(x.clone(), 2)),
    "what a wrapper holds": (lambda x: TwoTensor(x, x), lambda x: TwoTensor(x, x + 1)),
    "float8": (lambda x: x.to(torch.float8_e5m2), lambda x: (x * 2).to(torch.float8_e5m2)),
    "stderr": (_prints, _prints_to_stderr),
    "log": (_logs, _prints),
    "order of prints and logs": (lambda x: (_prints(x), _logs(x)), lambda x: (_logs(x), _prints(x))[::-1]),
    "random numbers": (lambda x: torch.rand(1) * 0, lambda x: torch.zeros(1)),
}


@pytest.fixture(autouse=True)
def _grad():
    yield
    torch.set_grad_enabled(True)


@pytest.mark.parametrize("name", PAIRS)
def test_a_difference_is_noticed(name):
    one, two = PAIRS[name]
    expected = observe(one, torch.ones(2, 3))
    torch.set_grad_enabled(True)
    assert differences(expected, observe(two, torch.ones(2, 3)))


@pytest.mark.parametrize("name", PAIRS)
def test_a_program_is_like_itself(name):
    for program in PAIRS[name]:
        expected = observe(program, torch.ones(2, 3))
        torch.set_grad_enabled(True)
        assert differences(expected, observe(program, torch.ones(2, 3))) == []
        torch.set_grad_enabled(True)


class _NotIterated(list):
    def __iter__(self):
        return 3


class _NotPrinted:
    def __eq__(self, other):
        return True

    def __repr__(self):
        return 3


def test_no_code_of_the_program_prints_its_objects():
    outcome = observe(lambda x: _NotPrinted(), torch.ones(2))
    assert not differences(outcome, observe(lambda x: _NotPrinted(), torch.ones(2)))


def test_contents_are_read_past_what_a_class_says_of_iterating():
    outcome = observe(lambda x: _NotIterated([x * 2]), torch.ones(2, requires_grad=True))
    other = observe(lambda x: _NotIterated([x * 3]), torch.ones(2, requires_grad=True))
    assert any("after backward" in line for line in differences(outcome, other))


def test_arrays_are_compared_to_the_bit():
    pytest.importorskip("numpy")
    expected = observe(lambda x: x.numpy(), torch.ones(2, 3))
    assert differences(expected, observe(lambda x: x.numpy(), torch.ones(2, 3))) == []
    assert differences(expected, observe(lambda x: (x + 1e-6).numpy(), torch.ones(2, 3)))
    assert differences(expected, observe(lambda x: x.t().contiguous().t().numpy(), torch.ones(2, 3)))


def test_what_the_compiler_logs_is_not_the_programs():
    expected = observe(lambda: None)
    assert differences(expected, observe(lambda: logging.getLogger("fxstack.report").warning("a"))) == []


def test_objects_are_described_without_what_a_process_counts():
    def hooked(x):
        return x.register_hook(lambda grad: grad)

    outcomes = [observe(hooked, torch.ones(2, requires_grad=True)) for _ in range(2)]
    assert differences(*outcomes) == []


def test_gradients_of_wrappers_are_compared():
    def given():
        return TwoTensor(torch.ones(2), torch.ones(2)).requires_grad_()

    expected = observe(lambda x: x * 2, given())
    assert differences(expected, observe(lambda x: x * 2, given())) == []
    assert any("grad" in line for line in differences(expected, observe(lambda x: x + x.detach(), given())))


def test_gradients_are_compared():
    def leaf():
        return torch.ones(3, requires_grad=True)

    expected = observe(lambda x: x * 2, leaf())
    assert differences(expected, observe(lambda x: (x * 2).detach().requires_grad_(), leaf()))
    assert differences(expected, observe(lambda x: x * 3, leaf()))
    assert differences(expected, observe(lambda x: x + x.detach(), leaf()))
    assert differences(expected, observe(lambda x: x * 2, leaf())) == []


def test_nan_is_nan_and_bits_of_it_do_not_count():
    assert differences(observe(lambda: math.nan), observe(lambda: -math.nan)) == []
    one, two = torch.tensor(math.nan), torch.tensor(-math.nan)
    assert differences(observe(lambda: one), observe(lambda: two)) == []
    assert differences(observe(lambda: one), observe(lambda: torch.tensor(1.0)))


def test_rounding_is_allowed_where_it_is_asked_for():
    one, two = observe(lambda: torch.tensor(1.0)), observe(lambda: torch.tensor(1.0 + 1e-6))
    assert differences(one, two)
    assert differences(one, two, values=rounding(1e-5, 0)) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "make",
    [
        lambda number: (torch.eye(2) * number).to_sparse_csr(),
        lambda number: (torch.eye(2) * number).to_sparse_bsr((1, 1)),
        lambda number: torch.nested.nested_tensor([torch.ones(2) * number, torch.ones(3)]),
    ],
)
def test_rounding_of_other_layouts(make):
    make(1.0)  # torch warns once in a process
    one, near, far = (observe(lambda number=number: make(number)) for number in (1.0, 1.0 + 1e-6, 1.1))
    assert differences(one, near, values=rounding(1e-5, 0)) == []
    assert differences(one, far, values=rounding(1e-5, 0))


def test_other_objects_can_be_watched():
    log: list[int] = []
    expected = observe(lambda: log.append(1), also={"log": log})
    assert differences(expected, observe(lambda: log.append(1), also={"log": log}))


def test_lines_of_a_traceback():
    def one():
        raise ValueError

    def two():
        raise ValueError

    file = __file__
    assert differences(observe(one), observe(two)) == []
    assert differences(observe(one, lines_of=file), observe(two, lines_of=file))


def test_views_that_autograd_refuses_to_follow_are_described():
    def program(x):
        base = x * 1
        first, _ = base.split(1)
        base.add_(1)
        return base, first

    outcome = observe(program, torch.ones(2, requires_grad=True))
    assert not differences(outcome, observe(program, torch.ones(2, requires_grad=True)))
    assert "modified inplace" in str(outcome.forms["result"])


def test_gradients_may_be_compared_apart():
    def outcome(factor):
        def program(x):
            return (x * factor,)

        return observe(program, torch.ones(2, requires_grad=True))

    near = rounding(1e-3, 0.0)
    found = differences(outcome(1.0), outcome(1.0001), gradients=near)
    assert found
    assert not any(".grad" in line for line in found)
    assert any(".grad" in line for line in differences(outcome(1.0), outcome(1.0001)))


def test_a_backward_that_is_refused_may_pass_but_not_the_other_way_round():
    def refused(x):
        y = x.exp()
        y.detach().zero_()
        torch._C._autograd._unsafe_set_version_counter((y,), (7,))
        return y

    made = [torch.ones(2, requires_grad=True) for _ in range(2)]
    raises, passes = observe(refused, made[0]), observe(torch.exp, made[1])
    left_out = {"result", "arguments", "refused backward"}
    assert differences(raises, passes, ignore={"result", "arguments"})
    assert differences(raises, passes, ignore=left_out) == []
    assert differences(passes, raises, ignore=left_out)


def test_strides_of_single_items_in_gradients():
    def with_gradient(strides):
        tensor = torch.ones(1, 3, requires_grad=True)
        tensor.grad = torch.empty_strided((1, 3), strides).fill_(1.0)
        return tensor

    one, two = (observe(partial(with_gradient, strides)) for strides in ((3, 1), (1, 1)))
    assert differences(one, two)
    assert differences(one, two, ignore={"grad layout"}) == []
    within = torch.ones(1, 3, requires_grad=True)
    within.grad = torch.empty(2, 3).fill_(1.0)[1:]
    assert differences(one, observe(lambda: within))
    assert differences(one, observe(lambda: within), ignore={"grad layout"}) == []
    gaps = observe(partial(with_gradient, (6, 2)))
    assert differences(one, gaps, ignore={"grad layout"})


def test_addresses_in_words_are_not_compared():
    kept = [memoryview(b"ab"), memoryview(b"ab")]
    outcomes = [observe(lambda given: float(given), one) for one in kept]
    assert outcomes[0].forms["exception"] == outcomes[1].forms["exception"]


def test_bools_that_say_that_they_are_negative_are_described():
    negative = torch._neg_view(torch.tensor([True, False]))
    assert differences(observe(lambda x: x, negative), observe(lambda x: x, negative)) == []


def test_versions_in_words_count_where_versions_do():
    def refused(x, writes):
        y = x * 2
        for _ in range(writes):
            y.zero_()
        return y * y, y.add_(1)

    outcomes = [observe(partial(refused, writes=n), torch.ones(2, requires_grad=True)) for n in (0, 1)]
    assert all(outcome.backward_raised for outcome in outcomes)
    (line,) = (line for line in differences(*outcomes) if line.startswith("backward"))
    assert "expected version 1" in line
    assert not any(line.startswith("backward") for line in differences(*outcomes, ignore=("own version",)))


@pytest.mark.skipif(not hasattr(torch.Tensor, "rename"), reason="torch 2.13 has no names of dimensions")
def test_names_of_dimensions_and_their_numbers_count():
    named, other = torch.ones(2, 3).rename("a", "b"), torch.ones(2, 3).rename("a", None)
    assert same_bits(named, named.clone()) is None
    assert same_bits(named, other) is not None
    assert same_bits(named, named + 1) is not None
