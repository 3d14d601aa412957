"""The programs of a graph with many equal blocks, made from those of the same graph with a few of them.

    captured graph, 48 blocks -> 3 blocks -> plan, programs  \
                              -> 4 blocks -> plan, programs  -> plan and programs for 48 blocks

Two short graphs are traced, decomposed, differentiated, lowered and scheduled as any other. What the longer one has
more than the shorter one is a round (``extrapolation``), which is put in as often as blocks were left out. What does
not repeat so is compiled whole.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from torch.fx import GraphModule

from aot_autograd.plan import JointPlan, SavedInput
from fx_interface import TensorSpec, UnsupportedProgramError, signature_of
from fx_interface.events import is_heard
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.signature import InputKind
from fxstack.blocks.equal_blocks import EqualBlocks, equal_blocks, shortened
from fxstack.blocks.extrapolation import NotRegular, extended
from fxstack.blocks.numbered import named_program, numbered_plan, numbered_program, plan_of_numbers
from inductor_codegen.ir.program import Buffer, Program

logger = logging.getLogger("fxstack")

SHORT = (3, 4, 5)
"""Blocks of short graphs: the first two are compiled, and where they are too few to repeat, the next one."""
WORTH = 16
"""Blocks from which short graphs are compiled instead of the whole one, if there is not too much besides."""
SHARE = 0.7
"""How many calls the first two short graphs may have together, as a share of the whole graph's; and all three at most
as many as it has."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What native code is made of: a plan, and the programs of its graphs; ``whole`` as in ``StoredProgram``."""

    plan: JointPlan
    forward: Program
    backward: Program | None
    whole: bytes | None = None


def planned_by_blocks(
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
    plan: Callable[[GraphModule, Sequence[Any]], Planned],
) -> Planned | None:
    """``plan(graph_module, example_inputs)`` from plans of shorter graphs; None where there is no such way.

    Who listens to events is told of the graphs that are compiled: then the whole graph is.
    """
    if is_heard():
        return None
    run = equal_blocks(graph_module, example_inputs, WORTH)
    if run is None or _calls(graph_module, run, SHORT[:2]) > SHARE * len(graph_module.graph.nodes):
        return None
    try:
        planned = [plan(*shortened(graph_module, example_inputs, run, SHORT[0]))]
        for kept in SHORT[1:]:
            planned.append(plan(*shortened(graph_module, example_inputs, run, kept)))
            try:
                made = _extended(planned[-2], planned[-1], run.count - kept + 1)
            except NotRegular as reason:
                logger.debug("%d equal blocks do not repeat in %d: %s", run.count, kept, reason)
                if _grows(planned[-2], planned[-1]) or _calls(graph_module, run, SHORT) > len(
                    graph_module.graph.nodes
                ):
                    return None
                continue
            if _fits(made, graph_module, example_inputs):
                return made
            return None
    except UnsupportedProgramError:  # raised again for the whole graph, with its lines
        return None
    return None


def _calls(graph_module: GraphModule, run: EqualBlocks, kept: Sequence[int]) -> int:
    """About how many calls the graphs with so many of the blocks have."""
    whole = len(graph_module.graph.nodes)
    return sum(whole - (run.count - count) * (run.length + run.inputs) for count in kept)


def _grows(few: Planned, many: Planned) -> bool:
    """Whether a kernel depends on how many blocks there are, as one that adds up what all of them give."""
    pairs = [(few.forward, many.forward)]
    if few.backward is not None and many.backward is not None:
        pairs.append((few.backward, many.backward))
    named = [tuple([kernel.name for kernel in program.kernels] for program in pair) for pair in pairs]
    return any(len(one) == len(other) and one != other for one, other in named)


def _extended(few: Planned, many: Planned, more: int) -> Planned:
    """NotRegular where the programs have not got a round each."""
    if (few.backward is None) != (many.backward is None):
        raise NotRegular("one has a backward")
    if few.plan.constants or few.plan.symbols or few.plan.born:
        raise NotRegular("tensors of the program or sizes that vary")
    plan = extended(numbered_plan(few.plan), numbered_plan(many.plan), more)
    forward = _longer(few.forward, many.forward, more)
    backward = None
    if few.backward is not None and many.backward is not None:
        backward = _longer(few.backward, many.backward, more)
    if few.whole is None or many.whole is None:
        if few.whole is not many.whole:
            raise NotRegular("one has a backward for some of the gradients")
        return Planned(plan_of_numbers(plan), forward, backward)
    from fxstack.blocks.kept_texts import longer_text  # where there are several results

    whole = longer_text(few.whole, many.whole, more)
    return Planned(plan_of_numbers(plan), forward, backward, whole)


def _longer(few: Program, many: Program, more: int) -> Program:
    return named_program(extended(numbered_program(few), numbered_program(many), more), many.kernels)


def _fits(made: Planned, graph_module: GraphModule, example_inputs: Sequence[Any]) -> bool:
    """Whether plan and programs are those of a graph with these inputs: what can be counted without compiling it."""
    signature = signature_of(graph_module)
    assert signature is not None
    plan, kinds = made.plan, (InputKind.PARAMETER, InputKind.BUFFER)
    owned = tuple([place for place, decl in enumerate(signature.inputs) if decl.kind in kinds])
    if plan.inputs != len(example_inputs) or plan.owned != owned or len(made.forward.inputs) != plan.inputs:
        return False
    backward = plan.backward
    if backward is None or made.backward is None:
        return backward is None and made.backward is None
    trained = {place for place, example in enumerate(example_inputs) if example.requires_grad}
    if {*backward.gradient_of, *backward.cut} != trained:
        return False
    outputs = len(made.forward.outputs)
    taken = made.backward.inputs[len(backward.symbols) :]
    if len(taken) != len(backward.saved) + len(backward.tangents) or len(backward.saved) != len(
        backward.saved_specs
    ):
        return False
    for source, spec, given in zip(backward.saved, backward.saved_specs, taken, strict=False):
        if isinstance(source, SavedInput):
            declared = signature.inputs[source.index].spec
            if not isinstance(declared, TensorSpec) or declared.sizes != spec.sizes:
                return False
        elif source.index >= outputs:
            return False
        if isinstance(given, Buffer) and given.sizes != spec.sizes:
            return False
    return True
