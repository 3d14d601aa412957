"""Warnings and log records: what is given, from which line, and when a warning is an exception."""

import logging
import warnings

import pytest
import torch

from dynamo_capture import optimize

X = torch.ones(2)


def compiled(function):
    return optimize(lambda graph_module, inputs: graph_module.forward)(function)


@pytest.fixture
def records():
    """What the logger ``capture.messages`` gives: level, text, place, exception."""
    found = []

    class Keep(logging.Handler):
        def emit(self, record):
            error = record.exc_info and (repr(record.exc_info[1]), record.exc_info[2].tb_lineno)
            place = record.funcName, record.lineno, record.pathname
            found.append((record.levelname, record.getMessage(), place, error, getattr(record, "tag", None)))

    logger, handler = logging.getLogger("capture.messages"), Keep()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    yield found
    logger.removeHandler(handler)


def test_records_come_from_the_users_lines(records):
    logger = logging.getLogger("capture.messages")

    def inner(x):
        logger.warning("inner %s", tuple(x.shape), extra={"tag": 5})
        logger.info("of the caller", stacklevel=2)
        return x + 1

    def f(x):
        logger.debug("not enabled")
        logger.log(35, "first")
        y = inner(x)
        logging.LoggerAdapter(logger, {}).info("adapted")
        return y * 2

    f(X)
    expected = list(records)
    fast = compiled(f)
    for _ in range(2):
        records.clear()
        fast(X)
        assert records == expected
    assert len(records) == 4


def test_a_record_keeps_the_exception_that_is_handled(records):
    logger = logging.getLogger("capture.messages")

    def f(x):
        try:
            raise ValueError("shown")
        except ValueError:
            logger.exception("caught")
            logger.error("also", exc_info=True)
        return x + 1

    f(X)
    expected = list(records)
    records.clear()
    compiled(f)(X)
    assert records == expected
    assert records[0][3][0] == "ValueError('shown')"


def heard(function, action, x=X):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        try:
            function(x)
            error = None
        except Warning as raised:
            error = repr(raised)
    return [(str(w.message), w.category, w.filename, w.lineno) for w in caught], error


@pytest.mark.parametrize("first", ["always", "error"])
def test_a_warning_is_an_exception_where_a_filter_says_so(first):
    log = []

    def f(x):
        try:
            log.append("try")
            y = x + 1
            warnings.warn("careful", UserWarning, stacklevel=1)
            log.append("warned")
            return y
        except DeprecationWarning:
            log.append("another")
        finally:
            log.append("finally")

    fast = compiled(f)
    for action in (first, "always", "error", "ignore", "error"):
        log.clear()
        expected = heard(f, action), list(log)
        log.clear()
        assert (heard(fast, action), log) == expected


def test_a_warning_about_the_caller():
    def inner(x):
        warnings.warn("of f", stacklevel=2)
        warnings.warn("of the caller of f", stacklevel=3)
        warnings.warn("of nobody", stacklevel=1000)
        return x + 1

    def f(x):
        y = inner(x)
        y.tolist()  # a graph break
        return inner(y)

    def calls(function):
        return lambda x: function(x)

    expected = heard(calls(f), "always")
    fast = compiled(f)
    for _ in range(2):
        assert heard(calls(fast), "always") == expected
