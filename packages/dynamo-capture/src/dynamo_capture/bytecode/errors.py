"""What the bytecode layer refuses, as one exception type with a stable code.

It is no subclass of ``fx_interface.errors.StackError``, whose package imports torch; it has the same attributes, and
the translator turns it into an ``UnsupportedProgramError``.
"""

from __future__ import annotations

NO_SUCH_INSTRUCTION = "CAP101"
RESUMED_GENERATOR = "CAP102"
PLACE_NOT_RESUMABLE = "CAP103"
"""An instruction offset is on the stack, a cell is put away, or the place is unreachable."""
NOT_ASSEMBLABLE = "CAP104"
"""An unknown name or opcode, or jumps that fit no stack."""
STACK_MISMATCH = "CAP105"
"""The given stack does not match the depth at the place."""


class UnsupportedBytecodeError(Exception):
    """A code object cannot be decoded, assembled or resumed.

    ``code`` is one of the constants above, and stable.
    """

    def __init__(self, code: str, what: str) -> None:
        self.code = code
        self.what = what
        super().__init__(code, what)

    def __str__(self) -> str:
        return f"[{self.code}] {self.what}"
