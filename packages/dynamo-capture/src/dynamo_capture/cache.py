"""Limits on what is cached per code object: how many entries, which one goes first, and what invalidates them.

    cache = CodeCache(limit=8)
    cache.admit(code, entry, owners=(module,))   # weakly tied: the entry is dropped when an owner dies
    cache.full(code); cache.reset()
"""
