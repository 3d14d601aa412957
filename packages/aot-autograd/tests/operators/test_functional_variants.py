"""Functional variants are found by schema, for every writing operator that has one."""

from __future__ import annotations

import pytest
import torch

from aot_autograd.operators.functional_variants import functional_variant
from fx_interface.errors import UnsupportedProgramError
from fx_interface.operator_facts.functional_overloads import is_writing

aten = torch.ops.aten


@pytest.mark.parametrize(
    ("op", "variant"),
    [
        (aten.add_.Tensor, aten.add.Tensor),
        (aten.add.out, aten.add.Tensor),
        (aten.index_put_.default, aten.index_put.default),
        (aten._foreach_add_.Scalar, aten._foreach_add.Scalar),
        (aten.bernoulli_.float, aten.bernoulli.p),
        (aten.__iand__.Tensor, aten.__and__.Tensor),
        (aten._batch_norm_with_update.default, aten._batch_norm_with_update_functional.default),
        (aten.max.dim_max, aten.max.dim),
    ],
)
def test_variant(op: torch._ops.OpOverload, variant: torch._ops.OpOverload) -> None:
    found = functional_variant(op)
    assert found.op is variant
    assert not is_writing(found.op)


def test_results_beyond_the_written_arguments_come_first() -> None:
    variant = functional_variant(aten._batch_norm_with_update.default)
    assert variant.plain == 4
    assert variant.written == (3, 4)


def test_no_variant_is_an_error_with_a_code() -> None:
    with pytest.raises(UnsupportedProgramError, match="AOT105"):
        functional_variant(aten.polygamma_.default)


def test_nearly_every_in_place_operator_has_a_variant() -> None:
    """The few that have none are listed, so that a new one is noticed."""
    missing = set()
    for name in torch._C._dispatch_get_all_op_names():
        namespace, _, rest = name.partition("::")
        packet, _, overload = rest.partition(".")
        if namespace != "aten" or not packet.endswith("_") or packet.endswith("__"):
            continue
        op = getattr(getattr(aten, packet), overload or "default")
        try:
            if is_writing(op):
                functional_variant(op)
        except UnsupportedProgramError:
            missing.add(packet)
    assert missing <= {
        "_fill_mem_eff_dropout_mask_",
        "_sobol_engine_ff_",
        "_sobol_engine_initialize_state_",
        "_sobol_engine_scramble_",
        "alpha_dropout_",
        "dropout_",
        "feature_alpha_dropout_",
        "feature_dropout_",
        "fill_diagonal_",
        "polygamma_",
        "requires_grad_",
        "set_",
        "squeeze_",
        "resize_as_sparse_",
    }, missing
