"""What torch's record of operations says."""

import torch

from dynamo_capture.runtime.autograd_history import Histories


def test_what_is_kept_and_what_is_depended_on():
    x, w, v = (torch.rand(3, requires_grad=True) for _ in range(3))
    frozen = torch.rand(3)
    e = x.exp()
    one, two = (e * frozen).sum(), w * 3
    known = Histories([one, two], [x, w, v])
    assert [known.keeps(t) for t in (x, w, v, e, frozen, one, two)] == [
        False,
        False,
        False,
        True,
        True,
        False,
        False,
    ]
    assert not known.keeps(3)
    assert not known.are_alike
    assert Histories([one, e], [x, w]).are_alike


def test_histories_end_where_they_are_told_to():
    x = torch.rand(3, requires_grad=True)
    y = x.sin()
    known = Histories([y * 2, y.cos()], [y])
    assert known.are_alike
    assert known.keeps(y)
    assert not known.keeps(x)
