"""Scalars are interned: equal expressions are one object."""

from __future__ import annotations

import torch

from inductor_codegen.ir.index import Index, Loaded, as_index, variable
from inductor_codegen.ir.scalar import Constant, Guard, ScalarBuilder, operands
from inductor_codegen.ir.traverse import postorder

FLOAT = torch.float32


def test_equal_expressions_are_one_object() -> None:
    make = ScalarBuilder()
    i = variable("i", 4)
    one = make.apply("add", (make.load("a", i, FLOAT), make.constant(1.0, FLOAT)), FLOAT)
    two = make.apply("add", (make.load("a", i, FLOAT), make.constant(1.0, FLOAT)), FLOAT)
    assert one is two


def test_numbers_differ_by_sign_of_zero_and_dtype() -> None:
    make = ScalarBuilder()
    assert make.constant(0.0, FLOAT) is not make.constant(-0.0, FLOAT)
    assert make.constant(1, torch.int64) is not make.constant(1, torch.int32)


def test_conversion_of_a_constant_is_a_constant() -> None:
    make = ScalarBuilder()
    converted = make.convert(make.constant(2.7, FLOAT), torch.int64)
    assert isinstance(converted, Constant)
    assert converted.value == 2


def test_operands_include_scalars_in_indices() -> None:
    make = ScalarBuilder()
    chosen = make.load("index", variable("i", 4), torch.int64)
    taken = make.load("table", as_index(Loaded(chosen)), FLOAT)
    assert operands(taken) == (chosen,)
    guarded = make.guarded((Guard(as_index(Loaded(chosen)), 0, 3),), taken, make.constant(0.0, FLOAT))
    assert postorder([guarded])[0] is chosen


def test_guard_without_conditions_is_the_body() -> None:
    make = ScalarBuilder()
    body = make.load("a", Index(0), FLOAT)
    assert make.guarded((), body, make.constant(0.0, FLOAT)) is body
