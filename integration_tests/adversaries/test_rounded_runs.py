"""Roundings explain what is made of roundings, and no worse sums."""

from __future__ import annotations

import torch
from accuracy import _farther
from rounded_runs import farthest

EQUAL = torch.full((1000,), 0.1, dtype=torch.float32).double()
NUMBERS = torch.linspace(0.1, 7.0, 1000).double()


def _moved(function, given):
    def run():
        return {"r": function(given)}

    exact = run()
    return farthest(run, exact, torch.float32)["r"], exact["r"]


def test_deviations_of_equal_numbers_are_roundings():
    moved, exact = _moved(lambda x: ((y := x - 3) - y.mean()).square().sum(), EQUAL)
    assert float(exact) < 1e-25
    assert 1e-14 < moved < 1e-9


def test_equal_numbers_stay_equal():
    moved, _ = _moved(lambda x: (y := x * 3.3).amax() - y.amin(), EQUAL)
    assert moved == 0


def test_a_sum_is_moved_by_one_rounding_of_it():
    moved, exact = _moved(lambda x: x.sum(), NUMBERS)
    assert 0 < moved <= 1.01 * 2**-23 * float(exact)
    off = (exact * (1 + 1e-6)).float()
    assert _farther(exact.float(), off, exact, moved) is not None


def test_what_float32_holds_is_not_moved():
    moved, _ = _moved(lambda x: (x > 3).double().sum(), NUMBERS)
    assert moved == 0


def test_the_mean_of_equal_numbers_that_float32_holds_is_moved():
    moved, exact = _moved(lambda x: (x - x.mean()).square().sum(), EQUAL)
    assert float(exact) < 1e-25
    assert 1e-14 < moved < 1e-9


def test_sums_of_whole_numbers_are_not_moved():
    moved, _ = _moved(lambda x: x.sum(), torch.arange(1000.0).double())
    assert moved == 0
