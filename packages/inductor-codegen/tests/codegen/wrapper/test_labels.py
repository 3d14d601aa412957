"""Labels of steps: what runs, and for which line."""

from __future__ import annotations

import torch

from fx_interface.errors import UserLocation
from inductor_codegen.codegen.wrapper.labels import label_of_call, label_of_kernel
from inductor_codegen.ir.kernel import Kernel, Vector
from inductor_codegen.ir.program import CallExtern

WHERE = UserLocation("/home/user/model.py", 4, "forward")


def _kernel(*comments: str) -> Kernel:
    return Kernel("kernel_1", (), (), (), Vector.INNER, (), comments)


def test_a_kernel_names_its_first_operators_once_each() -> None:
    kernel = _kernel("a: exp  m.py:1", "b: exp  m.py:2", "c: mul", "d: sum  m.py:3")
    assert label_of_kernel(kernel, WHERE) == "kernel_1 exp, mul, sum (model.py:4 in forward)"


def test_more_operators_than_are_shown() -> None:
    kernel = _kernel(*(f"n{i}: op{i}  m.py:1" for i in range(6)))
    assert label_of_kernel(kernel, None) == "kernel_1 op0, op1, op2, op3, ..."


def test_a_kernel_of_nothing_that_is_known() -> None:
    assert label_of_kernel(_kernel(), UserLocation("m.py", 2)) == "kernel_1 (m.py:2)"


def test_a_call_has_the_operators_name() -> None:
    call = CallExtern(torch.ops.aten.add.out, (), (), (), WHERE)
    assert label_of_call(call) == "aten::add.out (model.py:4 in forward)"
