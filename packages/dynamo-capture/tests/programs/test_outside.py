"""Warnings and log records that a program keeps in objects of its own, and looks at."""

from __future__ import annotations

import logging
import warnings

import torch

X = torch.arange(6.0).reshape(2, 3) + 1


def test_records_that_the_program_keeps(same):
    def make():
        logger = logging.Logger("kept")
        names = []

        class Keeping(logging.Handler):
            def __init__(self):
                super().__init__()
                self.records = []

            def emit(self, record):
                self.records.append(record.getMessage())
                names.append(record.levelname)
                self.last = len(names)

        handler = Keeping()
        logger.addHandler(handler)

        def f(x):
            logger.info("one")
            first = len(handler.records)
            logger.warning("two %d", 2)
            seen = list(names)
            logger.error("three")
            return x * 2, first, seen, handler.last, handler.records[-1]

        return f

    same.made(make, *[(X,)] * 3)


def test_warnings_that_the_program_records(same):
    def f(x):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.warn("careful", stacklevel=1)
            count = len(caught)
            y = x + count
            warnings.warn("again", DeprecationWarning, stacklevel=1)
        return y, [str(one.message) for one in caught], caught[-1].category.__name__

    same(f, (X,), (X + 1,))


def test_filters_that_are_set_inside(same):
    def f(x, action):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(action)
                warnings.warn("told", stacklevel=1)
        except UserWarning as told:
            return x, str(told)
        return x * 2, None

    same(f, (X, "ignore"), (X, "error"), (X, "ignore"))
