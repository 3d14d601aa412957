"""Compile functional FX graphs of primitives into fused native kernels and one entry point."""

import fx_interface  # noqa: F401  (first: modules that follow get builtins of their own)

# isort: split
from typing import TYPE_CHECKING

from fx_interface.python_runtime.lazy_names import lazy_names
from fx_interface.python_runtime.runtimes import runs_compiled_code
from inductor_codegen.__about__ import __version__

if TYPE_CHECKING:
    from inductor_codegen.compile import begin_graph, begin_program, chooser, compile_graph, compile_program
    from inductor_codegen.lower.images.channels_last import choose_layouts
    from inductor_codegen.native.parallel_kernels import prepare_kernels
    from inductor_codegen.native.stored import load_graph
    from inductor_codegen.options import CodegenOptions
    from inductor_codegen.pipeline import plan
    from inductor_codegen.toolchain.cpp_compiler import require_compiler
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "inductor_codegen.compile": (
                "begin_graph",
                "begin_program",
                "chooser",
                "compile_graph",
                "compile_program",
            ),
            "inductor_codegen.lower.images.channels_last": ("choose_layouts",),
            "inductor_codegen.native.parallel_kernels": ("prepare_kernels",),
            "inductor_codegen.native.stored": ("load_graph",),
            "inductor_codegen.options": ("CodegenOptions",),
            "inductor_codegen.pipeline": ("plan",),
            "inductor_codegen.toolchain.cpp_compiler": ("require_compiler",),
        },
    )

__all__ = [
    "CodegenOptions",
    "__version__",
    "begin_graph",
    "begin_program",
    "choose_layouts",
    "chooser",
    "compile_graph",
    "compile_program",
    "load_graph",
    "plan",
    "prepare_kernels",
    "require_compiler",
]

runs_compiled_code(__name__)
