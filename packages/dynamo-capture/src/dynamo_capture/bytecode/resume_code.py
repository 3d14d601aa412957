"""Resume functions: the rest of a body, from one instruction on, as an ordinary function of the frame's state there.

    resumes = ResumeCodes()                                    # owns the memo; one per cache lifetime
    plan = resumes.make(code, index, stack=(VALUE, NULL))      # index into decode(code).instructions
    plan.code          # code object: parameters = plan.parameters, free variables = plan.freevars
    plan.parameters    # tuple[Parameter]: what to pass, in order: Parameter("stack", 0) | Parameter("local", "x")
    plan.freevars      # names of the cells to close over, in order (the original's cell and free variables)

``stack`` describes the value stack at the place, bottom first: VALUE is passed as a parameter, NULL is pushed by the resume
function itself (an unfinished call, a cleared comprehension variable). Only live locals are parameters; ``unbound`` names
live locals that hold no value there, ``keep`` names dead ones to pass nevertheless (``locals()`` in the rest).
The memo maps a place in a resume function back to the original's place, so that resuming the same place twice
(a break in a loop) gives the same code object. Refuses generators (CAP102) and places where the stack holds an instruction
offset (CAP103, inside the exceptional exit of ``with`` and ``finally`` clean-ups).

Splicing a break into replacement code:

    replacement = splice(code, prologue, enter=i, exits={j: instructions})

is the original body in which control starts with ``prologue`` (which leaves stack, locals and cells as they are before
instruction i), goes to instruction i, under the original's exception handlers, and wherever it would reach instruction j
runs ``exits[j]`` instead, unprotected. ``emit_resume_call(emitter, plan, ...)`` writes such an exit: pack the stack, make or load the
resume function, call it, return its result.
"""
