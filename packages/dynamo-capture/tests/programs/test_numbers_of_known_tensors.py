"""``int`` and ``float`` of tensors whose content is known refuse what torch refuses, in its words."""

import pytest
import torch

X = torch.ones(2)
KNOWN = {
    "one": torch.ones(1),
    "integers": torch.arange(2),
    "floats": torch.ones(2),
    "none": torch.ones(0),
    "truths": torch.ones(2, 2, dtype=torch.bool),
    "complex": torch.ones(2, dtype=torch.complex64),
}


@pytest.mark.parametrize("kind", [int, float, complex])
@pytest.mark.parametrize("name", KNOWN)
def test_conversions(same, kind, name):
    def program(x):
        y = x + 1
        try:
            return y, kind(KNOWN[name])
        except (RuntimeError, ValueError) as error:
            return y, type(error), str(error)

    same(program, (X,))
