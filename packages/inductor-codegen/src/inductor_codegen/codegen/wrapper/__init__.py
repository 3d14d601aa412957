"""The native entry of a program: one C++ function that allocates, runs kernels and calls library operators."""

from inductor_codegen.codegen.wrapper.entry import EntrySource, write_entry

__all__ = ["EntrySource", "write_entry"]
