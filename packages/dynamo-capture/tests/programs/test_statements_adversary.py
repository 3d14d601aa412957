"""The smallest programs of ``integration_tests/adversaries/statements.py`` that did something else when captured."""

from __future__ import annotations

import contextlib
import itertools

import pytest
import torch

from dynamo_capture import optimize
from fx_interface.conformance.outcomes import differences, observe


def _broken(value=None):
    print(end="")
    return value


def _check(program, *calls):
    """Each call does the same captured as it does in eager; arguments are made afresh."""
    captured = optimize(lambda module, examples: module.forward)(program)
    for make in calls:
        expected = observe(program, *make(), lines_of=__file__)
        assert differences(expected, observe(captured, *make(), lines_of=__file__)) == []


class Box:
    def __init__(self):
        self.n = 1

    def grow(self):
        self.n += 1


def _groups(numbers):
    groups = []
    for key, group in itertools.groupby(enumerate(numbers.tolist()), lambda pair: pair[1]):
        group = list(group)
        groups.append((key, group[0][0], group[-1][0] + 1))
    return groups


def _of_an_image(rows):
    found = []
    for current in rows:
        parts = []
        for kind, start, end in _groups(current[current >= 0]):
            parts.append(torch.arange(end - start))
            if kind:
                print(end="")
        found.append([len(part) for part in parts])
    return found


def test_a_loop_over_a_list_that_the_graph_filled_goes_on_where_it_stood():
    def rows(length, at):
        made = torch.zeros(2, length, dtype=torch.long)
        made[:, at : at + 4] = 1
        return (made,)

    _check(_of_an_image, lambda: rows(19, 3), lambda: rows(12, 1), lambda: rows(30, 20))


def _list_filled(items, x):
    items.extend([1, 2, 3])
    seen = []
    for item in items:
        seen.append(x * item)
        if item == 2:
            _broken()
    return seen


def _dict_filled(table, x):
    table.update(a=1, b=2, c=3)
    seen = []
    for key, value in table.items():
        seen.append((key, x * value))
        if value == 2:
            _broken()
    return seen


def _two_lists(items, others, x):
    items += [3, 4]
    ahead, inner = iter(items), iter(others)
    next(ahead)
    others.append(ahead)
    next(inner)
    others.append(7)
    _broken()
    return x + 1, list(ahead), [item if isinstance(item, int) else "iterator" for item in inner]


@pytest.mark.parametrize(
    ("program", "made"),
    [
        (_list_filled, lambda: ([], torch.ones(2))),
        (_list_filled, lambda: ([5], torch.ones(2))),
        (_dict_filled, lambda: ({}, torch.ones(2))),
        (_dict_filled, lambda: ({"z": 5}, torch.ones(2))),
        (_two_lists, lambda: ([1, 2], [0], torch.ones(2))),
    ],
)
def test_iterators_over_changed_containers_outlive_a_graph(program, made):
    _check(program, made, made)


def _methods(box, log, x):
    log.append(box.grow)
    log.append(box.grow)
    return x + 1, box.grow is box.grow, box.grow == box.grow


def test_each_access_makes_a_method_of_its_own():
    _check(_methods, lambda: (Box(), [], torch.ones(2)))


def _raised_again(x):
    try:
        with torch.inference_mode(False):
            try:
                _broken()
                return [x][3]
            except ValueError:
                pass
    except KeyError:
        pass


@torch.inference_mode(False)
def _decorated(x):
    _broken()
    return [x][3]


def _calls_decorated(x):
    y = x + 1
    return _decorated(y)


@pytest.mark.parametrize("program", [_raised_again, _calls_decorated])
def test_an_exception_that_is_raised_again_shows_its_first_line(program):
    _check(program, lambda: (torch.ones(2),), lambda: (torch.ones(2),))


def _in_mode(x, enabled):
    with torch.set_grad_enabled(enabled):
        return x * 2


def _switched(x, enabled):
    torch._C._set_grad_enabled(enabled)
    return x * 2


def _casting(x, enabled):
    with torch.autocast("cpu", enabled=enabled):
        return x * 2


@pytest.mark.parametrize("program", [_in_mode, _switched, _casting])
def test_modes_are_not_set_to_what_is_no_bool(program):
    made = [lambda value=value: (torch.ones(2, requires_grad=True), value) for value in (True, 1, None)]
    _check(program, *made)
    assert torch.is_grad_enabled()


def _may_fail(x, total):
    total.add_(x)
    if bool((x > 1).any()):
        raise ValueError
    return total * 2


def test_what_is_undone_has_its_version_again():
    _check(_may_fail, lambda: (torch.ones(2), torch.zeros(2)), lambda: (torch.ones(2) * 3, torch.zeros(2)))


class _BreaksAndSwallows:
    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        _broken()
        return kind is not None


def test_a_break_that_leaves_a_with_block_in_a_with_block_of_a_loop():
    """The compiler went round and round: each round of the loop seemed to handle one exception more."""

    def program(x):
        for number in range(3):
            with contextlib.suppress(KeyError):
                x = x * 2
                with _BreaksAndSwallows():
                    if number % 2:
                        raise ValueError(number)
                    x = x + 1
        return x

    _check(program, lambda: (torch.ones(2),), lambda: (torch.ones(3),))
