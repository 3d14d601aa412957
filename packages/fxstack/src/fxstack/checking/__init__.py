"""``FXSTACK_CHECK=1``: each compiled graph runs beside eager once, on copies, before it is used (decision 0068).

Loaded where the switch is on; only the warning's class is always there.
"""

from fxstack.checking.check_warning import CheckWarning

__all__ = ["CheckWarning"]
