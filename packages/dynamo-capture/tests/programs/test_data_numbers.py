"""Programs that go on with sizes and integers from data; without shape rules the graph breaks there, with the same results."""

from __future__ import annotations

import operator

import numpy
import pytest
import torch

from dynamo_capture import optimize

X = torch.arange(12.0).view(6, 2)
MASKS = [X[:, 0] > 4, X[:, 0] > 99, X[:, 0] == 4]


def test_numbers_as_python_sees_them(same):
    def program(x, n):
        k = n.item()
        found = [k, k + 1, k * 2 - 1, k > 2, not_more(k), bool((x > 3).any()), n.tolist()]
        found.append((x > k).all().item())
        return found, x[k], torch.arange(k + 7)

    def not_more(k):
        return k <= 3

    same(program, *[(X, torch.tensor(n)) for n in (3, -2, 0, 3)])


def test_lists_of_numbers(same):
    def program(x, sizes):
        first, second = x.split(sizes.tolist())
        return first.sum(), second * 2, sizes.tolist()[0] + 1

    same(program, *[(X, torch.tensor(s)) for s in ([2, 4], [6, 0], [1, 5], [3, 4])])


def test_one_mask_gives_one_size_until_it_is_written_to(same):
    def program(x, mask):
        mask = mask.clone()
        y = x[mask] * (x + 1)[mask]
        mask[0] = True
        return y, x[mask], mask.nonzero()

    same(program, *[(X, mask) for mask in MASKS])


def test_rows_are_joined_by_twos(same):
    def program(x, mask):
        rows = x[mask]
        return rows.reshape(-1, 2 * rows.shape[-1]) * 2, rows.view(-1, 2, 2).sum(1)

    same(program, *[(X, mask) for mask in MASKS])


def test_facts_that_fail_raise_what_the_program_raises(same):
    def program(x, mask):
        n = x[mask].shape[0]
        torch._check(n <= 1, lambda: f"{n} are too many")
        return x[mask] + n

    same(program, *[(X, mask) for mask in MASKS])


def test_a_condition_in_the_places_of_a_bool(same):
    def program(x, n):
        more = n.item() > 2
        seen = {more: "yes"} if n.dim() else {}
        return more, [more, not more], seen, more is True, more + 1, x * 2

    same(program, *[(X, torch.tensor(n)) for n in (3, 1, 5)])


def test_numbers_in_a_loop_and_a_branch(same):
    def program(x, numbers):
        total = x.sum()
        for i in range(3):
            n = numbers[i].item()
            if n > 1:
                total = total + x[:n].sum()
            total = total - x[n]
        return total

    same(program, *[(X, torch.tensor(n)) for n in ([0, 1, 2], [3, 3, -1], [5, 0, 0])])


def test_effects_around_a_number(same):
    def program(x, n, log):
        log.append("before")
        k = int(n)
        log.append(k)
        x.add_(k)
        assert k < 4, "four"
        log.append(x[k])
        return k

    same(program, *[(X.clone(), torch.tensor(n), []) for n in (1, 2, 4)])


def test_a_side_that_raises_is_left_to_python(same):
    """Also where the exception is caught, where the message takes work, and where only the other side goes on."""

    def program(x, mask, log):
        log.append(len(log))
        if not mask.any():
            raise KeyError(f"none of {mask.shape[0]:>4}", x.dtype)
        try:
            if (x * mask[:, None]).sum() > 60:
                raise ValueError("too " + "much") from None
        except ValueError as error:
            return x + 1, str(error), log
        torch._assert(mask[0] == 0, "the first")
        return x * 2, log

    same(program, *[(X, mask, []) for mask in (*MASKS, X[:, 0] > -1, X[:, 0] < 3)])


def test_effects_before_such_a_side_are_undone(same):
    def program(x, mask):
        x.add_(1)
        if mask.all():
            raise RuntimeError("all")
        return x * 2

    same(program, *[(X.clone(), mask) for mask in (*MASKS, X[:, 0] > -1)])


def test_positions_in_tensors(same):
    def program(x, start, ends):
        return x.narrow(0, start, 2), torch.narrow(x, 1, start % 2, length=1), x.tensor_split(ends, dim=0)

    for start, ends in ((0, [2, 3]), (4, [0, 9]), (-2, [4, 1]), (-7, [1, 2]), (5, [1, 2])):
        same(program, (X, torch.tensor(start), torch.tensor(ends)))


def test_tensors_of_other_sizes_are_not_equal(same):
    same(lambda x, y: x if x.equal(y) else y * 2, (X, X[1:]), (X, X[0]), (X, X + 0))


def test_numbers_in_tensors_given_to_operations_on_lists(whole):
    def program(x, y, weight):
        xs, ys = [x, x * 2], [y, y + 1]
        a = torch._foreach_addcmul(xs, ys, xs, value=1 - weight)
        b = torch._foreach_add(xs, weight)
        torch._foreach_lerp_(ys, xs, weight)
        torch._foreach_mul_(xs, weight)
        return a, b, xs, ys

    for weight in (torch.tensor(0.5), torch.tensor(0.25, dtype=torch.float64)):
        whole(
            program,
            (torch.ones(2), torch.arange(2.0), weight),
            (torch.ones(3), torch.arange(3.0), weight * 3),
        )


def test_tensors_of_nested_lists_of_numbers_from_data(whole):
    def program(x):
        a = torch.tensor([[x[0].item()], [2.0]])
        return (
            a,
            torch.tensor([[1, x.long()[1].item()], [0, 3]]),
            torch.tensor([(x[0].item(), 1)], dtype=torch.float64),
        )

    whole(program, (torch.ones(2),), (torch.arange(3.0),))


def test_lists_that_are_no_tensor(same):
    def program(x):
        try:
            return torch.tensor([[x[0].item()], [2.0, 3.0]])
        except ValueError as error:
            return x, str(error)

    same(program, (torch.ones(2),))


def test_nested_lists_and_lists_of_arrays(whole):
    def program(x, array):
        rows = x.tolist()
        more = (array * 2).tolist()
        return rows, more, array.sum().item(), x[:, : rows[0][1]]

    for first in (1, 2):
        table = torch.tensor([[first, 1], [2, 0]])
        whole(program, (table, numpy.arange(3)), (table + 1, numpy.arange(3) * 2))


def test_whether_a_list_holds_a_tensor_is_data(whole):
    def program(x, n):
        a, b = x[:1], x.sum()
        return (
            1 in [a],
            2.0 not in (a, b),
            n in [a, n],
            [1] == [1],
            b in [b],
            (x + 1 if 5 in [n, n + 1] else x),
        )

    for n in (4, 7):
        whole(program, (torch.ones(2), n), (torch.arange(2.0), n))


def test_a_list_of_tensors_decides_on_a_branch(same):
    def program(x):
        y = x * 2
        if 2 in [y[:1], y[1:]]:
            return y + 1
        return y - 1, torch.ones(3) in [x]

    same(program, (torch.ones(2),), (torch.zeros(2),), (torch.full((2,), 3.0),))


def test_sizes_beside_numbers_of_numpy(whole):
    def program(x, n, scale):
        return x + (n % scale), x * (scale * x.shape[0]), type(n % scale)

    whole(program, (torch.ones(2), 7, numpy.int64(4)), (torch.ones(2), 9, numpy.int64(4)), dynamic=True)


@pytest.fixture
def library():
    return pytest.importorskip("primtorch_decomps").LIBRARY


@pytest.mark.parametrize("numbers", [(5, 6), (9, 0), (11, 3)])
def test_several_conditions_are_stated_together(same, numbers, library):
    def program(x, taken):
        one, two = taken.tolist()
        torch._check(operator.and_(operator.and_(one >= 3, one <= 10), two >= 2))
        if one >= 3 and one <= 11 and two >= 1:
            x = x + 1
        return x * one + two

    same(program, (X, torch.tensor(numbers)), operators=library)


@pytest.mark.parametrize("mask", [[1, 0, 1, 1], [1, 1, 1, 1], [1, 0, 0, 0]])
def test_conditions_that_hold_together(same, mask, library):
    def program(x, taken):
        one, two = taken.sum().item(), taken[:2].sum().item()
        both = (one > 2) & (two < 2)
        chosen = torch.cond(both, lambda y: y + 1, lambda y: y * 2, (x,))
        return chosen, both, (one > 2) & True, False & (one > 3)

    def asserting(x, taken):
        one, two = taken.sum().item(), taken[:2].sum().item()
        assert (one > 2) & (two < 2), "not both"
        return x + one

    for one in (program, asserting):
        same(one, (X, torch.tensor(mask)), operators=library)


def test_strides_of_a_size_from_data_vary_behind_a_break(library):
    made = []

    def backend(graph_module, example_inputs):
        made.append(graph_module)
        return graph_module.forward

    def program(x, mask):
        turned = (x[mask] + 1).T
        print(end="")
        return turned * 2

    compiled = optimize(backend, operators=library)(program)
    for count in (2, 3, 4, 5):
        x, mask = torch.randn(6, 3), torch.arange(6) < count
        assert torch.equal(compiled(x, mask), program(x, mask))
    assert len(made) == 2
