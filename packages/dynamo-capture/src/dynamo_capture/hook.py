"""The frame hook's Python face: optimised regions and the answers a callback may give.

    wrapped = optimize(fn, callback)      # C object: calling it enables callback in this thread, calls fn, restores
    with region(callback): ...            # the same for a block; region(None) disables
    previous = set_callback(callback)     # the primitive: returns what was active in this thread (None: nothing)

A callback is ``callback(frame: FrameView, entry_count: int) -> Entry | Skip | None``; it runs with the hook disabled in its
thread, at the entry of a plain function frame for which no cached entry's guards hold.

- ``Entry(code, guard, owners=())``: cache and run ``code`` in place of the frame's (same argument layout and free variables);
  later calls run it when ``guard`` holds. ``guard`` is ``None`` (always), a ``guards`` native evaluator, or any callable
  ``guard(locals: tuple, function) -> bool`` where locals are the argument slots in co_varnames order.
- ``Skip(recursive=False)``: never ask again for this code object; recursive: nor for anything it calls.
- ``None``: run this call as it is, ask again next time.

``FrameView``: ``code, function, globals, builtins, closure`` and ``locals`` (dict by name of the argument slots that are set).
An exception that a callback raises propagates to the caller only if it is marked by ``propagate(exception)`` (or its type has
``propagates_from_hook = True``); any other is logged (logger ``dynamo_capture``), the frame runs as it is, and the code is
skipped from then on.
``entries(code)``, ``reset(code=None)``, ``skip(code)``, ``is_skipped(code)`` inspect and change the per-code cache.
"""
