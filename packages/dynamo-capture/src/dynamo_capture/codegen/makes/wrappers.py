"""Tensors that dispatch in Python and that the trace made: made again, as the program did."""

from __future__ import annotations

import torch

from dynamo_capture.codegen.reconstruct import Reconstruction, makes
from dynamo_capture.foundation.break_kinds import DISPATCH_IN_PYTHON, NOT_RESUMABLE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.runtime import made_tensors, subclass_parts
from dynamo_capture.values import Const
from dynamo_capture.values.tensors.followed import FollowedResults
from dynamo_capture.values.tensors.wrapper import WrapperValue


@makes(WrapperValue)
def wrapper(to: Reconstruction, value: WrapperValue) -> None:
    """``_make_wrapper_subclass`` with the arguments that it had, and the attributes that were set since."""
    if value.joined is not None:
        results, index = value.joined
        to.push(results)
        to.emitter.load_const(index)
        to.emitter.binary_subscr()
        return
    if value.meta.requires_grad:
        raise GraphBreak(DISPATCH_IN_PYTHON, f"{value.describe()} is a result whose history is not to be had")
    if value.meta.is_inference is not torch.is_inference_mode_enabled():
        raise GraphBreak(
            NOT_RESUMABLE, "a tensor that dispatches in Python is made in a block of inference mode"
        )

    def arguments() -> None:
        to.push_all(value.given[:1])
        to.push_dict([(Const(name), part) for name, part in zip(value.names, value.given[1:], strict=True)])
        to.push_dict([(Const(name), part) for name, part in (value.attrs or {}).items()])

    to.call(made_tensors.new_wrapper, arguments, 3)


@makes(FollowedResults)
def followed(to: Reconstruction, value: FollowedResults) -> None:
    """``follow`` of what the graph gave."""

    def arguments() -> None:
        to.push(Const(value.ends))
        to.push_tuple(value.results)
        to.push_tuple([*value.carriers])
        to.push_tuple(value.inputs)

    to.call(subclass_parts.follow, arguments, 4)
