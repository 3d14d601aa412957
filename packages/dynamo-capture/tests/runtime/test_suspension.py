"""What Python makes of the answer of a frame that may be left in the middle."""

import weakref

import pytest

from dynamo_capture._eval_frame import Suspended
from dynamo_capture.runtime.suspension import (
    End,
    answered,
    attribute_answered,
    next_answered,
    of_comparison,
    of_left_operand,
    of_size,
    of_truth,
)


def _raises(error):
    raise error


def test_a_suspended_answer_suspends_the_result():
    rest = answered(lambda: Suspended(lambda: 3), of_size, True)
    assert type(rest) is Suspended
    assert rest() is False
    rest = next_answered(lambda: Suspended(_raises, StopIteration()))
    assert rest() is End


def test_a_missing_attribute_is_asked_of_getattr():
    class Owner:
        def __getattr__(self, name):
            return name * 2

    assert attribute_answered(lambda: _raises(AttributeError("x")), Owner(), "ab") == "abab"
    with pytest.raises(AttributeError, match="x"):
        attribute_answered(lambda: _raises(AttributeError("x")), object(), "ab")


def test_operators_that_the_left_operand_leaves_to_the_right_one():
    assert of_left_operand(NotImplemented, "__radd__", "+", 1, 2.5) == 3.5
    with pytest.raises(TypeError, match="unsupported operand"):
        of_left_operand(NotImplemented, "__radd__", "+", "a", 2)
    assert of_comparison(NotImplemented, "__eq__", "==", 1, "a") is False


def test_the_truth_is_a_bool():
    assert of_truth(True, True) is False
    with pytest.raises(TypeError, match="should return bool, returned int"):
        of_truth(1, False)


def test_an_exception_does_not_keep_what_a_frame_took():
    """The frame of the call stands behind those that the traceback holds."""

    class Taken:
        pass

    def fails(taken):
        del taken
        raise ValueError

    taken = Taken()
    alive = weakref.ref(taken)
    suspended = Suspended(fails, taken)
    del taken
    with pytest.raises(ValueError) as raised:
        suspended()
    assert raised.value.__traceback__ is not None
    assert alive() is None
