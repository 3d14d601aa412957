"""What data choose, when the graph has run."""

from __future__ import annotations

from dynamo_capture.codegen.reconstruct import Reconstruction, makes
from dynamo_capture.runtime import replacement_calls
from dynamo_capture.values import Const
from dynamo_capture.values.tensors.chosen import ChosenValue
from dynamo_capture.values.tensors.late import LateTensor


@makes(ChosenValue)
def choice(to: Reconstruction, value: ChosenValue) -> None:
    """One of two objects."""
    to.tx.effects.by_data.append("an object that data choose")
    to.call(replacement_calls.choose, lambda: to.push_all([value.condition, value.yes, value.no]), 3)


@makes(LateTensor)
def late(to: Reconstruction, value: LateTensor) -> None:
    """What autograd follows of such objects."""
    to.tx.effects.by_data.append("an object that data choose")
    operands = [Const(value.function), *value.operands]
    to.call(replacement_calls.followed, lambda: to.push_all(operands), len(operands))
