"""Compile functional FX graphs of primitives into fused native kernels and one entry point."""

from inductor_codegen.__about__ import __version__
from inductor_codegen.compile import compile_graph
from inductor_codegen.native import load_graph
from inductor_codegen.options import CodegenOptions

__all__ = ["CodegenOptions", "__version__", "compile_graph", "load_graph"]
