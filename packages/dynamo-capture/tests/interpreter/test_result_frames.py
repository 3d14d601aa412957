"""Which frame answers an instruction."""

import functools

import torch

from dynamo_capture.interpreter.result_frames import direct_codes
from dynamo_capture.polyfills import substitute_for
from dynamo_capture.values import Const, MethodValue, ObjectValue, PartialValue


class Callable:
    def __call__(self, x):
        return x


class Module(torch.nn.Module):
    def forward(self, x):
        return x


def plain(x):
    return x


def test_calls_whose_result_is_the_callees():
    assert direct_codes(Const(plain)) == [plain.__code__]
    assert direct_codes(MethodValue(Const(plain), Const(1))) == [plain.__code__]
    assert direct_codes(PartialValue.of(Const(plain), [])) == [plain.__code__]
    assert direct_codes(ObjectValue(Callable)) == [Callable.__call__.__code__]
    assert Module.forward.__code__ in direct_codes(ObjectValue(Module))


def test_builtins_that_are_traced_by_a_substitute():
    assert direct_codes(Const(functools.reduce)) == [substitute_for(functools.reduce).__code__]


def test_classes_and_other_builtins_have_no_such_code():
    assert direct_codes(Const(Callable)) == []
    assert direct_codes(Const(len)) == []
