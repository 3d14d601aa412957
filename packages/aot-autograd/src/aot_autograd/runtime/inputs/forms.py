"""Inputs whose own sizes or strides the program changes: the same operators in place, after everything else.

Results that are views of such an input are made before, from the form that it came in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aot_autograd.plan import JointPlan
from aot_autograd.runtime.results import is_dynamic, operator_named, replay
from fx_interface.backend import CompiledGraph
from fx_interface.symbols import Symbol


def giving_forms(plan: JointPlan, run: CompiledGraph) -> CompiledGraph:
    """``run``, and then the inputs of ``plan.forms`` take their forms."""
    steps = [(form.input_index, step, operator_named(step.op)) for form in plan.forms for step in form.steps]
    dynamic = any(is_dynamic(form.steps) for form in plan.forms)
    positions = [(Symbol(name), position) for name, position in plan.symbols] if dynamic else []

    def run_and_form(*inputs: Any) -> Sequence[Any]:
        results = run(*inputs)
        sizes = {atom: inputs[position] for atom, position in positions}
        for index, step, operator in steps:
            replay(inputs[index], step, sizes, operator)
        return results

    return run_and_form
