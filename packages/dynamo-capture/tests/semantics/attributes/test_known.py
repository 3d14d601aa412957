"""Attributes of modules, classes, functions and constants."""

from __future__ import annotations

import enum
import math
import types

from dynamo_capture.values import Const, MethodValue


class Color(enum.Enum):
    RED = 1


class Made:
    @classmethod
    def make(cls):
        return cls()


def test_of_modules_and_functions(tx):
    assert Const(math).get_attr(tx, "pi").as_constant() == math.pi
    assert Const(math.sqrt).get_attr(tx, "__name__").as_constant() == "sqrt"


def test_of_a_module_of_the_program(tx):
    module = types.ModuleType("its_own")
    module.scale = 3
    assert Const(module).get_attr(tx, "scale").as_constant() == 3


def test_of_classes_and_members(tx):
    assert isinstance(Const(Made).get_attr(tx, "make"), MethodValue)
    assert Const(Color.RED).get_attr(tx, "value").as_constant() == 1
    assert Const(Color).get_attr(tx, "RED").as_constant() is Color.RED
