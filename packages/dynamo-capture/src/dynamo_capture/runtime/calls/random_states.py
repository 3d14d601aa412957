"""The states of generators of random numbers that replacement code draws from, before it does: a frame that runs again
draws the same.

``getstate()`` of a generator of ``random`` makes a tuple of 625 integers, which takes ten times as long as most of what
is drawn. The bytes that it reads are those of the object in C (``_random.Random``: a place among 624 words, and these).
Whether they are what it tells is tried once, on a generator of its own; where they are not, nobody reads them.
"""

from __future__ import annotations

import _random
import ctypes
import functools
import random
import struct
from collections.abc import Callable
from typing import Any, Final

_WORDS: Final = 624
_FORM: Final = struct.Struct(f"i{_WORDS}I")
_START: Final = object.__basicsize__


def generator_states(generators: tuple[Any, ...]) -> tuple[Callable[[], object], ...]:
    """What puts the states of generators of random numbers back, the ``random`` module's among them."""
    own: random.Random = random.random.__self__  # type: ignore[attr-defined]
    return tuple(map(_restoring, (own, *generators)))


def _restoring(generator: Any) -> Callable[[], object]:
    if isinstance(generator, random.Random):
        words = _words(generator)
        if words is not None:
            return functools.partial(_set_words, generator, words)
        return functools.partial(generator.setstate, generator.getstate())
    if hasattr(generator, "bit_generator"):
        bits = generator.bit_generator
        return functools.partial(setattr, bits, "state", bits.state)
    return functools.partial(generator.set_state, generator.get_state())


def _words(generator: random.Random) -> tuple[bytes, Any] | None:
    """The state of a generator; None where it is kept otherwise."""
    cls = type(generator)
    if cls is not random.Random or not is_known():
        return None
    return ctypes.string_at(id(generator) + _START, _FORM.size), generator.gauss_next  # type: ignore[attr-defined]


def _set_words(generator: random.Random, words: tuple[bytes, Any]) -> None:
    """Bring the generator to a state that it had."""
    generator.setstate(_as_told(words))


def _as_told(words: tuple[bytes, Any]) -> tuple[Any, ...]:
    """The state as ``getstate()`` tells it."""
    index, *numbers = _FORM.unpack(words[0])
    return random.Random.VERSION, (*numbers, index), words[1]


@functools.cache
def is_known() -> bool:
    """Whether the bytes are what ``getstate()`` tells."""
    if _random.Random.__basicsize__ < _START + _FORM.size or random.Random.VERSION != 3:
        return False
    generator = random.Random(5)
    for draws in (0, 1, 700):
        for _ in range(draws):
            generator.random()
        generator.gauss(0, 1)
        words = ctypes.string_at(id(generator) + _START, _FORM.size), generator.gauss_next  # type: ignore[attr-defined]
        if _as_told(words) != generator.getstate():
            return False
    return True
