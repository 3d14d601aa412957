"""``fxstack dashboard``: one module a command."""

from fxstack_dashboard.commands.group import dashboard

__all__ = ["dashboard"]
