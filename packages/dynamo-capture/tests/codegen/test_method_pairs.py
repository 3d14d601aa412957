"""Methods that a graph break finds loaded stand on the stack as Python's instruction leaves them."""

from __future__ import annotations

import types

from dynamo_capture.codegen.method_pairs import take_methods_apart
from dynamo_capture.values import (
    CALLED_BY_ITSELF,
    CALLED_WITH_SELF,
    BuiltinMethod,
    Const,
    ListValue,
    MethodValue,
)


def method(self):
    return self


def test_a_method_in_python_is_its_function_beside_its_self():
    function, receiver = Const(method), ListValue([])
    stack = [Const(0), CALLED_BY_ITSELF, MethodValue(function, receiver)]
    take_methods_apart(stack)
    assert stack[1:] == [function, receiver]


def test_a_method_in_c_is_that_of_the_class():
    receiver = ListValue([])
    stack = [CALLED_WITH_SELF, BuiltinMethod(receiver, "append")]
    take_methods_apart(stack)
    assert stack[0].value is list.append
    assert isinstance(stack[0].value, types.MethodDescriptorType)
    assert stack[1] is receiver


def test_what_is_called_by_itself_stays():
    stack = [CALLED_BY_ITSELF, Const(len), Const("after")]
    before = list(stack)
    take_methods_apart(stack)
    assert stack == before
