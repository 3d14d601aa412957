"""Reports for people: what was captured, where it broke and why, and what was assumed."""

from fxstack.report.explain import explain
from fxstack.report.explanation import Explanation

__all__ = ["Explanation", "explain"]
