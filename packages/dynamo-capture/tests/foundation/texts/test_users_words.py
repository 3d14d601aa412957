"""Texts about a program name nothing that only the translator knows."""

import contextvars
import io

import pytest
import torch

from dynamo_capture import optimize, run_graph
from dynamo_capture.foundation.texts.users_words import in_users_words

X = torch.ones(3)
VARIABLE = contextvars.ContextVar("VARIABLE", default=1.0)


@pytest.mark.parametrize(
    ("inside", "outside"),
    [
        (
            "a call of lock.release on lock .callee.args[0].__dict__['lock']",
            "a call of lock.release on lock",
        ),
        (".stack1 is a quantized tensor", "a value is a quantized tensor"),
        (".callee.args[0]['a key'] is a view", "a value is a view"),
        ("lock self.__dict__['cb'].__dict__['lock']", "lock self.cb.lock"),
        ("a call of <instancemethod f at 0x7fe281285940>", "a call of <instancemethod f>"),
        ("torch._C._autograd.pybind11_detail_function_record_v1_x.f", "torch._C._autograd.f"),
        ("_VariableFunctionsClass.add: it fails", "torch.add: it fails"),
        ("x.stack0 and args[0].callee are the program's", "x.stack0 and args[0].callee are the program's"),
        ("1.5 or .5 or .05 of the iterator .0", "1.5 or .5 or .05 of the iterator"),
    ],
)
def test_words(inside, outside):
    assert in_users_words(inside) == outside


class Writer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.file = io.StringIO()

    def forward(self, x):
        x = x + VARIABLE.get()
        self.file.write("a")
        self.file.write("b")
        return x.untyped_storage().nbytes() + x


def test_breaks_of_a_program_name_what_it_knows():
    optimizer = optimize(run_graph)
    optimizer(Writer())(X)
    said = [str(made.stopped.what) for _, made in optimizer.report.replacements if made.stopped is not None]
    assert any("StringIO self.file" in text for text in said)
    assert len(said) >= 3
    for text in said:
        assert not any(part in text for part in (".callee", ".stack", " at 0x", "pybind11", "__dict__"))
