"""The text that ``object`` gives its instances: it says where they are in memory, so it is made when the code runs."""

from __future__ import annotations

import torch

from dynamo_capture import optimize


class Plain:
    pass


class Named:
    def __repr__(self):
        return f"named {self.name}"


def test_the_text_of_the_object_that_is_returned(forward):
    def program(x, given):
        made = Plain()
        made.x = x
        return made, str(made), repr(made), f"{made} and {given!r}", str(given), x + 1

    fast = optimize(forward, fullgraph=True)(program)
    for _ in range(3):
        given = Plain()
        made, text, shown, both, of_given, _ = fast(torch.ones(2), given)
        assert text == shown == object.__repr__(made)
        assert both == f"{made} and {given!r}"
        assert of_given == str(given)
    assert len(fast.__fxstack_capture__.report.replacements) == 1


def test_across_a_break_and_in_words(same):
    def program(x):
        made, named = Plain(), Named()
        named.name = "n"
        text = str(made)
        print(x.sum().item())
        return text.split(" object at")[0], str(named), text == str(made), len({text, repr(made)}), x + 1

    same(program, (torch.ones(2),), (torch.ones(2),))
