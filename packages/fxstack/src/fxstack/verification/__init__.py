"""How a compiled function is measured against eager, operator by operator if need be; ``fxstack.verify`` uses it."""

from fxstack.verification.report import Verification

__all__ = ["Verification"]
