"""Triton text for GPUs, from the same loop IR as the C++ text."""

from inductor_codegen.codegen.triton.kernel import kernel_source

__all__ = ["kernel_source"]
