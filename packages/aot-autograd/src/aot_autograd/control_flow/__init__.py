"""Programs that data steer: compiled in parts, between which the branches and loops are taken when they run."""

from typing import TYPE_CHECKING

from aot_autograd.control_flow.parts import has_parts
from fx_interface.python_runtime.lazy_names import lazy_names

if TYPE_CHECKING:
    from aot_autograd.control_flow.buckets import bucket_cuts
    from aot_autograd.control_flow.hooked import hook_cuts
    from aot_autograd.control_flow.walk import PartCompiler, compile_in_parts
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "aot_autograd.control_flow.buckets": ("bucket_cuts",),
            "aot_autograd.control_flow.hooked": ("hook_cuts",),
            "aot_autograd.control_flow.walk": ("PartCompiler", "compile_in_parts"),
        },
    )

__all__ = ["PartCompiler", "bucket_cuts", "compile_in_parts", "has_parts", "hook_cuts"]
