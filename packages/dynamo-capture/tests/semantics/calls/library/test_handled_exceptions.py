"""What is asked about the exception that is being handled."""

import traceback
import unittest

import pytest
import torch

import dynamo_capture

X = torch.ones(3)


def _whole(function):
    """Captured in one graph, and equal to eager."""
    fast = dynamo_capture.optimize(dynamo_capture.run_graph, fullgraph=True)(function)
    assert torch.equal(fast(X), function(X))


def test_frames_of_an_exception_in_a_graph_are_cleared():
    def f(x):
        try:
            raise ValueError("wrong")
        except ValueError as error:
            traceback.clear_frames(error.__traceback__)
            traceback.clear_frames(None)
        return x + 1

    _whole(f)


def test_assertions_about_exceptions_are_captured():
    """``unittest`` clears the frames of the exception that it has caught."""
    case = unittest.TestCase()

    def f(x):
        with case.assertRaisesRegex(TypeError, "arg 1 must be a class"):  # noqa: PT027  # it is what is tested
            issubclass(1, int)
        return x + 1

    _whole(f)


def test_frames_of_an_exception_from_outside_are_pythons():
    try:
        raise ValueError
    except ValueError as error:
        entry = error.__traceback__

    def f(x, entry):
        traceback.clear_frames(entry)
        return x + 1

    with pytest.raises(dynamo_capture.CaptureError, match="CAP234"):
        dynamo_capture.optimize(dynamo_capture.run_graph, fullgraph=True)(f)(X, entry)
