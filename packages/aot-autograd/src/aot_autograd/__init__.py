"""Forward and backward graphs ahead of time: tracing, functionalization, partitioning and their runtime."""

import fx_interface  # noqa: F401  (first: modules that follow get builtins of their own)

# isort: split
from typing import TYPE_CHECKING

from aot_autograd.__about__ import __version__
from fx_interface.python_runtime.lazy_names import lazy_names
from fx_interface.python_runtime.runtimes import runs_compiled_code

if TYPE_CHECKING:
    from aot_autograd.control_flow import compile_in_parts, has_parts
    from aot_autograd.decompositions import Decompositions
    from aot_autograd.functions import aot_function, aot_module
    from aot_autograd.joint.split import TracedProgram
    from aot_autograd.partition import Partitioner, save_everything
    from aot_autograd.pipeline import compile_joint, compile_traced, trace_joint
    from aot_autograd.plan import JointPlan
    from aot_autograd.plan_json import plan_from_data, plan_to_data
    from aot_autograd.runtime import finish
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "aot_autograd.control_flow": ("has_parts",),
            "aot_autograd.control_flow.walk": ("compile_in_parts",),
            "aot_autograd.decompositions": ("Decompositions",),
            "aot_autograd.functions": ("aot_function", "aot_module"),
            "aot_autograd.joint.split": ("TracedProgram",),
            "aot_autograd.partition": ("Partitioner", "save_everything"),
            "aot_autograd.pipeline": ("compile_joint", "compile_traced", "trace_joint"),
            "aot_autograd.plan": ("JointPlan",),
            "aot_autograd.plan_json": ("plan_from_data", "plan_to_data"),
            "aot_autograd.runtime": ("finish",),
        },
    )

__all__ = [
    "Decompositions",
    "JointPlan",
    "Partitioner",
    "TracedProgram",
    "__version__",
    "aot_function",
    "aot_module",
    "compile_in_parts",
    "compile_joint",
    "compile_traced",
    "finish",
    "has_parts",
    "plan_from_data",
    "plan_to_data",
    "save_everything",
    "trace_joint",
]

runs_compiled_code(__name__)
