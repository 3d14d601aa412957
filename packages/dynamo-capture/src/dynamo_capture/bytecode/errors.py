"""What the bytecode layer refuses, as one exception type with a stable code.

It is no subclass of ``fx_interface.errors.StackError``, whose package imports torch; it has the same attributes, and
the translator turns it into an ``UnsupportedProgramError``.
"""

from __future__ import annotations


class UnsupportedBytecodeError(Exception):
    """A code object cannot be decoded, assembled or resumed.

    ``code`` is stable: CAP101 no such instruction, CAP102 generators cannot be resumed, CAP103 the place cannot be
    resumed (an instruction offset is on the stack, a cell is put away, or the place is unreachable), CAP104 not
    assemblable (an unknown name or opcode), CAP105 the given stack does not match the depth at the place.
    """

    def __init__(self, code: str, what: str) -> None:
        self.code = code
        self.what = what
        super().__init__(code, what)

    def __str__(self) -> str:
        return f"[{self.code}] {self.what}"
