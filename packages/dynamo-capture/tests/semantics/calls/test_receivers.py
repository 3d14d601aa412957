"""Which methods are called in a way of their own."""

from __future__ import annotations

import math
import re

import torch

from dynamo_capture.semantics.calls.receivers import FOLDED, is_constant_object, is_tensor_getter
from dynamo_capture.semantics.modes.contexts import ContextValue


def test_methods_of_constants_are_called_on_them_modules_functions_are_not():
    assert is_constant_object(torch.float32)
    assert not is_constant_object(math)
    assert not is_constant_object(None)
    assert isinstance(re.compile("a"), FOLDED)
    assert not isinstance([], FOLDED)


def test_the_getter_of_a_tensors_attribute_is_told_from_others():
    assert is_tensor_getter(torch.Tensor.shape.__get__)
    assert not is_tensor_getter(ContextValue.__init__.__get__)
