"""Compile functional FX graphs of primitives into fused native kernels and one entry point."""

import fx_interface  # noqa: F401  (first: modules that follow get builtins of their own)
from inductor_codegen.__about__ import __version__
from inductor_codegen.compile import compile_graph, load_graph
from inductor_codegen.options import CodegenOptions

__all__ = ["CodegenOptions", "__version__", "compile_graph", "load_graph"]
