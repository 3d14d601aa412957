"""Programs that go on with sizes and integers from data; without shape rules the graph breaks there, with the same results."""

from __future__ import annotations

import torch

X = torch.arange(12.0).view(6, 2)
MASKS = [X[:, 0] > 4, X[:, 0] > 99, X[:, 0] == 4]


def test_numbers_as_python_sees_them(same):
    def program(x, n):
        k = n.item()
        found = [k, k + 1, k * 2 - 1, k > 2, not_more(k), bool((x > 3).any()), n.tolist()]
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
