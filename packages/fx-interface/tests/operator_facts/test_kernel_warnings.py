"""Kernels that warn: what is said of them is what they do."""

import warnings

import pytest
import torch

from fx_interface.operator_facts.kernel_warnings import warns

ATEN = torch.ops.aten
BYTES = torch.tensor([1], dtype=torch.uint8)
BOOLS = torch.tensor([True])
VARIANCES = [
    (op, function, (torch.ones(shape), dim), {"correction": correction})
    for op, function in (
        (ATEN.std.correction, torch.std),
        (ATEN.var.correction, torch.var),
        (ATEN.std_mean.correction, torch.std_mean),
        (ATEN.var_mean.correction, torch.var_mean),
    )
    for shape, dim in (
        ((1,), None),
        ((2,), [0]),
        ((0, 3), None),
        ((1, 3), [0]),
        ((1, 3), [-1]),
        ((2, 2), [0, 1]),
        ((0, 3), [1]),
        ((2, 0), [0]),
        ((), None),
    )
    for correction in (None, 0, 2, 2.5)
]
HAS_LDEXP = not torch._C._dispatch_has_kernel_for_dispatch_key(
    "aten::ldexp.Tensor", "CompositeImplicitAutograd"
)
EXPONENTS = [
    (ATEN.ldexp.Tensor, torch.ldexp, (torch.ones(sizes), torch.ones(others, dtype=torch.int32)), {})
    for sizes, others in (((1,), (4,)), ((4,), (1,)), ((), (2,)), ((2, 1), (2,)), ((3,), (3,)), ((0,), (1,)))
    if HAS_LDEXP  # a kernel since torch 2.13
]
MASKED = (torch.ones(2), [BYTES.expand(2)], torch.ones(2))
CALLS = [
    *VARIANCES,
    *EXPONENTS,
    (ATEN.index.Tensor, lambda x, indices: x[tuple(indices)], (torch.ones(1), [BYTES]), {}),
    (ATEN.index.Tensor, lambda x, indices: x[tuple(indices)], (torch.ones(1), [BOOLS]), {}),
    (ATEN.index_put.default, torch.index_put, MASKED, {}),
    (ATEN.index_put_.default, torch.index_put_, MASKED, {}),
    (ATEN.index_put_.default, torch.index_put_, (torch.ones(1), [BOOLS], torch.ones(1)), {}),
    (ATEN.add.Tensor, torch.add, (torch.ones(1), torch.ones(1)), {}),
]


@pytest.mark.parametrize(("op", "function", "args", "kwargs"), CALLS)
def test_what_is_said_is_what_is_done(op, function, args, kwargs):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*args, **kwargs)
    assert warns(op, args, kwargs) == bool(caught)
