"""What makes values is declared once for each kind."""

import pytest

from dynamo_capture.codegen.makes.catalogue import MAKERS
from dynamo_capture.codegen.reconstruct import makes
from dynamo_capture.values import TupleValue, Value


def test_a_kind_has_one_maker():
    assert TupleValue in MAKERS
    with pytest.raises(ValueError, match="TupleValue"):
        makes(TupleValue)(lambda to, value: None)


def test_makers_of_iterators_are_declared():
    kinds = [kind for kind in MAKERS if kind.__name__.endswith("Iterator")]
    assert len(kinds) >= 9
    assert all(issubclass(kind, Value) for kind in kinds)
