"""Errors of the dashboard: a code, what happened, and what to do."""

from __future__ import annotations

from fx_interface.errors import StackError


class DashboardError(StackError):
    """A command cannot do what was asked (codes DSH1xx: suites and backends, DSH2xx: the database, DSH3xx: bisecting).

    The table of codes is in the package's README.
    """
