"""One line of the tables: a name of torch's, whether it is done, and what happens."""

from __future__ import annotations

from fx_interface.python_runtime.quick_dataclasses import dataclass

DONE = "done"
ACCEPTED = "accepted"
COUNTERPART = "use ours"
ABSENT = "no meaning"


@dataclass(frozen=True, slots=True)
class Entry:
    """``state``: ``done``: it means what it means to torch; ``accepted``: it is taken, and ``here`` happens instead;
    ``use ours``: it does not reach this stack, ``here`` names what does; ``no meaning``: there is nothing here that it
    could change. ``quiet``: taken without a warning."""

    name: str
    state: str
    here: str
    quiet: bool = False
