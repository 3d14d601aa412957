"""The functional counterpart of an operator that writes, by schema."""

import torch

from fx_interface.operator_facts.functional_overloads import functional_overload, is_writing, out_names

aten = torch.ops.aten


def test_in_place_and_out_have_the_same_counterpart():
    assert functional_overload(aten.add_.Tensor) is aten.add.Tensor
    assert functional_overload(aten.add.out) is aten.add.Tensor


def test_a_factory_is_told_what_its_out_knows():
    found = functional_overload(aten.arange.start_out)
    assert found is not None
    assert found._schema.name == "aten::arange"
    assert not is_writing(found)


def test_results_that_are_given():
    assert out_names(aten.max.dim_max) == ("max", "max_values")
    assert out_names(aten.add_.Tensor) == ()
