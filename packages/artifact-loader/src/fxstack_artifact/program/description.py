"""What people are shown of an entry point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def described_program(program: Mapping[str, Any]) -> dict[str, Any]:
    """A program for ``inspect``: its entry points, and its constants without their content."""
    return {
        "entry_points": {name: described_entry_point(data) for name, data in program["entry_points"].items()},
        "constants": [
            {"name": item["name"], "dtype": item["dtype"], "sizes": item["sizes"]}
            for item in program["constants"]
        ],
    }


def described_beside(program: Mapping[str, Any]) -> dict[str, Any] | None:
    """The file beside the artifact that has its weights, for ``inspect``; None where there is none."""
    stated = program.get("beside")
    return None if stated is None else {"file": str(stated["file"]), "bytes": int(stated["size"])}


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
