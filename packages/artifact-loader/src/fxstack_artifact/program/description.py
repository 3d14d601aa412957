"""What people are shown of an entry point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def described_entry_point(data: Mapping[str, Any]) -> dict[str, Any]:
    """An entry point for ``inspect``: its parameters, inputs as texts, symbols with their bounds, and results."""
    symbols = data["symbols"]
    return {
        "kind": data["kind"],
        "parameters": [item["name"] for item in data["parameters"]],
        "inputs": list(data["shown"]["inputs"]),
        "symbols": [
            {"name": name, "low": low, "high": None if high < 0 else high}
            for name, (_, _, low, high) in zip(symbols["names"], symbols["sources"], strict=True)
        ],
        "relations": list(data["shown"]["relations"]),
        "results": data["results"]["node"],
        "written": list(data["written"]),
        "operators_through_python": [call["op"] for call in data["graph"]["operators"]],
    }
