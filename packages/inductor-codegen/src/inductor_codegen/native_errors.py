"""Errors of the native half: no compiler, a compilation that failed, a wrong call, an artifact that cannot be loaded.

| code | meaning |
|---|---|
| IND111 | no C++ compiler was found |
| IND112 | the C++ compiler rejected generated code |
| IND113 | the compiler could not be run, or ran too long |
| IND114 | what the compiler made is not a usable library |
| IND115 | there is no folder to compile in |
| IND301 | a compiled graph was called with a tensor of another size, stride or type (raised as ValueError) |
| IND302 | an operator returned a tensor of another size or type than the compiler expected (raised as RuntimeError) |
| IND303 | an operator returned another number of results than its schema says (raised as RuntimeError) |
| IND401 | a stored compiled graph cannot be loaded |
| IND501 | no CUDA graph is replayed for a graph (logged, never raised) |
"""

from __future__ import annotations

from fx_interface.errors import StackError, UnsupportedProgramError


class MissingCompilerError(StackError):
    """No C++ compiler was found (IND111)."""


class CompilationError(UnsupportedProgramError):
    """The C++ compiler rejected generated code (IND112), could not be run (IND113), or made no library (IND114), or
    there was no room for its work (IND115)."""


class ArtifactLoadError(StackError):
    """A stored compiled graph cannot be loaded (IND401)."""
