"""Which of the frames that a break left are resumed one by one."""

import functools

import torch

from dynamo_capture import explain
from dynamo_capture.nesting import direct_codes
from dynamo_capture.values import Const, MethodValue, ObjectValue, PartialValue

X = torch.ones(3)


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
    assert direct_codes(PartialValue(Const(plain), [], {})) == [plain.__code__]
    assert direct_codes(ObjectValue(Callable)) == [Callable.__call__.__code__]
    assert Module.forward.__code__ in direct_codes(ObjectValue(Module))


def test_classes_and_builtins_have_no_such_code():
    assert direct_codes(Const(Callable)) == []
    assert direct_codes(Const(len)) == []


def _graphs(function):
    report = explain(function)(X)
    return sum(replacement.graph is not None for _, replacement in report.replacements)


def test_a_function_called_by_a_builtin_is_not_resumed_in_the_middle():
    def breaks(x):
        return x.sum().tolist() + 1

    def reduced(x):
        return functools.reduce(lambda a, b: a + breaks(b), [x, x, x]) * 2

    assert _graphs(lambda x: breaks(x) * x) == 2
    assert _graphs(reduced) > 2
