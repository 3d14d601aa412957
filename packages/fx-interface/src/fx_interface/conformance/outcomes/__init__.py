"""What a call did, as far as a program can tell, in a form that two runs can be compared by.

``observe`` runs a function and writes down its result, exception, output, warnings, gradients, what became of its
arguments, the random state and torch's modes. ``differences`` lists where two such outcomes are not the same:

    expected = observe(program, *arguments())
    actual = observe(compiled, *arguments())
    assert not differences(expected, actual)

Tensors are compared by type, dtype, device, shape, strides, offset, version (``own version``, where a
call has made the memory, ``inner version`` in a wrapper), history and to the bit; which tensors
share memory and which objects are one object is part of the outcome. A backend whose arithmetic may round otherwise
passes another comparison of values (``rounding``).
"""

from fx_interface.conformance.outcomes.comparing import (
    CompareValues,
    differences,
    rounding,
    same_bits,
)
from fx_interface.conformance.outcomes.forms import Form, LeafForm, ObjectForm, Outcome, TensorForm
from fx_interface.conformance.outcomes.observing import observe, seed_everywhere

__all__ = [
    "CompareValues",
    "Form",
    "LeafForm",
    "ObjectForm",
    "Outcome",
    "TensorForm",
    "differences",
    "observe",
    "rounding",
    "same_bits",
    "seed_everywhere",
]
