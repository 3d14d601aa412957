"""``import`` statements: modules, packages, names in them, and what is missing."""

import pytest


def modules():
    import collections.abc
    import math as m
    from os import path
    from os.path import join as j

    return m.floor(1.5), collections.abc.Mapping.__name__, path.basename("a/b"), j("a", "b")


def missing_module():
    import a_module_that_is_not_there  # noqa: F401


def missing_name():
    from math import nothing_of_this_name  # noqa: F401


@pytest.mark.parametrize("program", [modules, missing_module, missing_name])
def test_imports(agrees, program):
    agrees(program)
