"""Labels of steps: what runs, and for which line."""

from __future__ import annotations

from dataclasses import replace

import torch

from fx_interface.errors import UserLocation
from inductor_codegen.codegen.wrapper.labels import label_of_call, label_of_kernel, named_by_lines
from inductor_codegen.ir.kernel import Kernel, Vector
from inductor_codegen.ir.program import CallExtern, Program, RunKernel

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


def test_symbols_say_the_same_in_letters_of_c() -> None:
    kernels = (
        _kernel("a: exp  m.py:1", "b: aten.mul  m.py:2"),
        replace(_kernel(), name="kernel_2"),
        replace(_kernel("c: sum"), name="kernel_3"),
    )
    steps = (
        RunKernel("kernel_1", (), (), where=UserLocation("/home/me/größe-2.py", 7, "Net.<lambda>")),
        RunKernel("kernel_2", (), (), where=WHERE),
        RunKernel("kernel_1", (), (), where=WHERE),
        RunKernel("kernel_3", (), ()),
    )
    named = named_by_lines(Program((), kernels, steps, ()))
    names = [
        "kernel_exp_aten_mul__gr_e_2_py_7_lambda__1",
        "kernel__model_py_4_forward__2",
        "kernel_sum__3",
    ]
    assert [kernel.name for kernel in named.kernels] == names
    assert [step.kernel for step in named.steps if isinstance(step, RunKernel)] == [
        *names[:2], names[0], names[2]
    ]  # fmt: skip
