"""Which local variables may still be read at an instruction.

    live = live_variables(body)          # list parallel to body.instructions: frozenset of names live *before* each
    live_at(body, index)                 # the names for one place

Cells and free variables are not locals and are never listed (they are passed by closure). Exception handlers count: what a
handler reads is live wherever it may be entered.
"""
