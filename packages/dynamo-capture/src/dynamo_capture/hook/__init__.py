"""The frame hook and the cache of compiled code."""
