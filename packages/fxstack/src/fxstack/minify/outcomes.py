"""What a trial of a program comes to, and when two trials show the same failure."""

from __future__ import annotations

from dataclasses import asdict

from fx_interface.python_runtime.quick_dataclasses import dataclass

FAILURES = ("wrong", "error", "crash", "hang", "slow")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One trial.

    ``kind``: ``ok`` (compiled is as good as eager), ``invalid`` (eager itself fails, so the trial says nothing), or a
    failure: ``wrong`` (something differs), ``error`` (only compiled raises), ``crash`` (the process died), ``hang``
    (no end in time), ``slow``. ``what``: the class of the failure: what differs, the exception with its code, the
    signal. ``detail``: one line for people, which may change while a program shrinks.
    """

    kind: str
    what: str = ""
    detail: str = ""

    @property
    def is_failure(self) -> bool:
        """Whether the stack is at fault."""
        return self.kind in FAILURES

    def is_like(self, other: Outcome) -> bool:
        """Whether both show the same failure."""
        return (self.kind, self.what) == (other.kind, other.what)

    def as_json(self) -> dict[str, str]:
        """The fields, for a pipe."""
        return asdict(self)

    def __str__(self) -> str:
        return ": ".join(part for part in (self.kind, self.what, self.detail) if part)
