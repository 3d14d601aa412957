"""Ways to take something away from a program: each module gives candidates, smaller programs that may still fail.

A reduction is a function of a module's syntax tree that yields edits in a fixed order, boldest first. An edit makes a
new tree, so that an edit that is passed over costs nothing.
"""
