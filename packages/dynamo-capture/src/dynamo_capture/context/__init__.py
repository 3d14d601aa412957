"""What the rest of capture may ask of a running trace, as protocols over the type of values.

``values.base`` defines ``Value`` with methods that take the context, so the context cannot name ``Value``: it is
generic, and ``values.base.Context`` is the one everybody uses. ``Trace`` implements it.
"""
