"""Emitting instructions without knowing the CPython version.

    e = Emitter()                     # or Emitter(position=Position(line=3, ...)): given to every instruction emitted
    e.load_global_callable("print")   # pushes what a call needs, NULL included, in the version's order
    e.load_const(42)
    e.call(1)
    e.pop_top()
    done = e.label()                  # a LABEL not yet placed
    e.load_fast("x"); e.pop_jump_if_true(done)     # tests truth of any object
    e.place(done)
    e.load_const(None); e.return_value()
    body.instructions[:] = e.instructions

Calls: ``begin_call()``, push the callable, ``end_callable()``, push the arguments, ``call(n)`` or ``call(n, ("kw",))``;
``load_method(name)`` replaces the object on top by what ``call(n)`` needs. ``call_function_ex(kwargs)`` takes
[callable prologue as above], a tuple and, if asked, a dict. ``call_values(n)`` calls when the stack already is
``callable, a1..an`` with no NULL (it shuffles). See the methods' own docstrings.
"""
