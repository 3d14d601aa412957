"""Reports for people: what was captured, where it broke and why, and what was assumed."""

from fxstack.report.explain import Explanation, explain

__all__ = ["Explanation", "explain"]
