"""What the installed package must do at least; ``nox -s release-check`` runs it outside of the repository."""

from __future__ import annotations

import torch

import fx_guards
from fx_interface.source import LocalSource, Scope


def main() -> None:
    """The native evaluator tells calls apart, and the explanation names what differs."""
    facts = [
        fx_guards.tensor_match(LocalSource("x"), torch.zeros(4, 8), dynamic_sizes={0}),
        fx_guards.EqualsConstant(LocalSource("scale"), 2),
    ]
    evaluator = fx_guards.build(facts, varnames=("x", "scale"), freevars=())
    assert type(evaluator).__module__ == "fx_guards._native"
    assert evaluator.check(Scope({"x": torch.ones(6, 8), "scale": 2}, {}))
    wrong = Scope({"x": torch.ones(6, 9), "scale": 2}, {})
    assert not evaluator.check(wrong)
    assert "9" in str(fx_guards.first_failure(fx_guards.GuardSet(facts), wrong))


if __name__ == "__main__":
    main()
