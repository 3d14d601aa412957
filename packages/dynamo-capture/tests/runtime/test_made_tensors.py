"""Results of a graph become instances of a subclass."""

from __future__ import annotations

import torch

from dynamo_capture.runtime.made_tensors import as_class


class Marked(torch.Tensor):
    """Nothing of its own."""


class Slotted(torch.Tensor):
    """Laid out otherwise than a tensor."""

    __slots__ = ("mark",)


def test_a_view_that_nobody_else_holds_gets_the_class():
    results = (torch.ones(2, 2)[0],)
    made = as_class(results, 0, Marked)
    assert type(made) is Marked
    assert made is results[0]


def test_a_tensor_that_others_hold_keeps_its_class():
    held = torch.ones(2, 2)[0]
    made = as_class((held,), 0, Marked)
    assert (type(held), type(made)) == (torch.Tensor, Marked)
    assert made.data_ptr() == held.data_ptr()


def test_what_is_no_view_or_laid_out_otherwise_is_made_a_view():
    for results, cls in (((torch.ones(2),), Marked), ((torch.ones(2, 2)[0],), Slotted)):
        made = as_class(results, 0, cls)
        assert type(made) is cls
        assert made is not results[0]
        assert made._is_view()
