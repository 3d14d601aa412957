"""Why code was compiled again, and which code is not compiled any more."""

import logging

import pytest
import torch

from dynamo_capture import explain_recompiles, optimize, run_graph

X = torch.ones(2, 3)


def test_the_guard_its_values_its_line_and_how_often():
    def f(x, mode):
        if mode == "double":
            return x * 2
        return x + 1

    fast = optimize(run_graph)(f)
    for mode in ("double", "other", "third"):
        fast(X, mode)
    report = explain_recompiles(fast)
    (entry,) = report.entries
    assert entry.function.endswith("f")
    assert (entry.expression, entry.count) == ("mode", 2)
    assert entry.new == "'third'"
    assert entry.old in ("'double'", "'other'")
    assert entry.where is not None
    assert entry.where.line == f.__code__.co_firstlineno + 1
    assert "2 times" in str(report)
    assert str(entry.where) in str(report)


def test_nothing_to_report():
    fast = optimize(run_graph)(lambda x: x + 1)
    fast(X)
    fast(X + 1)
    assert explain_recompiles(fast).entries == ()
    assert str(explain_recompiles(fast)) == "nothing was compiled again"


def test_all_functions_together():
    def grows(x, mode):
        return x + len(mode)

    fast = optimize(run_graph)(grows)
    fast(X, "a")
    fast(X, "bc")
    assert any(entry.function.endswith("grows") for entry in explain_recompiles().entries)


def test_only_optimized_functions_have_a_report():
    with pytest.raises(TypeError, match="not an optimized function"):
        explain_recompiles(test_nothing_to_report)


def test_the_logger_says_so_as_it_happens(caplog):
    fast = optimize(run_graph)(lambda x, mode: x + len(mode))
    with caplog.at_level(logging.INFO, logger="dynamo_capture.recompiles"):
        fast(X, "a")
        assert not caplog.records
        fast(X, "bc")
    (record,) = (r for r in caplog.records if r.name == "dynamo_capture.recompiles")
    assert "mode" in record.getMessage()


def test_code_that_was_compiled_too_often_is_named():
    def f(x, mode):
        return x + len(mode)

    fast = optimize(run_graph)(f)
    for count in range(70):
        assert torch.equal(fast(X, "m" * count), X + count)
    (text,) = explain_recompiles(fast).exhausted
    assert "compiled 64 times" in text
    assert text in str(explain_recompiles(fast))
