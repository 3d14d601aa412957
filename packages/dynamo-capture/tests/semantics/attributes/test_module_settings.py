"""Attributes of modules that are more than entries of a namespace: of the module's class, or of its ``__getattr__``."""

from __future__ import annotations

import sys
import types

import pytest
import torch

from dynamo_capture import optimize

X = torch.arange(3.0)


class Settings(types.ModuleType):
    """A module whose attribute is kept elsewhere, as those of ``torch.backends``."""

    kept = {"scale": 2}

    @property
    def scale(self):
        return self.kept["scale"]

    @scale.setter
    def scale(self, value):
        self.kept["scale"] = value


@pytest.fixture
def settings():
    name = "settings_of_a_test"
    sys.modules[name] = module = Settings(name)
    module.kept["scale"] = 2
    yield module
    del sys.modules[name]


def _backend(graph_module, example_inputs):
    return graph_module.forward


def test_a_property_of_the_class_is_set_and_read(settings):
    def program(x):
        before = settings.scale
        settings.scale = before + 1
        return x * settings.scale, before

    compiled = optimize(_backend)(program)
    for expected in (3, 4, 5):
        y, before = compiled(X)
        assert torch.equal(y, X * expected)
        assert (before, settings.scale) == (expected - 1, expected)
        assert "scale" not in vars(settings)


@pytest.mark.usefixtures("settable_flags")
def test_settings_of_torch_are_set_for_what_follows():
    def program(x, allowed):
        before = torch.backends.cudnn.benchmark
        torch.backends.cudnn.benchmark = allowed
        try:
            return x + 1, torch.backends.cudnn.benchmark, torch._C._get_cudnn_benchmark()
        finally:
            torch.backends.cudnn.benchmark = before

    compiled = optimize(_backend)(program)
    for allowed in (True, False, True):
        assert compiled(X, allowed)[1:] == (allowed, allowed)
        assert torch.backends.cudnn.benchmark is False


def test_what_a_module_makes_when_it_is_asked():
    module = types.ModuleType("asked_of_a_test")
    exec("made = 1\ndef __getattr__(name):\n    return made", vars(module))
    sys.modules[module.__name__] = module

    def program(x):
        return x * module.factor

    compiled = optimize(_backend)(program)
    for value in (1, 2, 3):
        module.made = value
        assert torch.equal(compiled(X), X * value)
    module.factor = 7
    assert torch.equal(compiled(X), X * 7)
    del sys.modules[module.__name__]


def test_attributes_of_a_module_that_come_and_go(settings):
    def program(x):
        settings.extra = 3
        y = x * settings.extra
        del settings.extra
        return y, hasattr(settings, "extra")

    y, there = optimize(_backend)(program)(X)
    assert torch.equal(y, X * 3)
    assert not there
    assert "extra" not in vars(settings)
