"""Threads serve one compiled model: the first calls compile, all others run at once.

python examples/threads.py
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor, nn

import fxstack


def main() -> None:
    """Eight threads send batches of different sizes, and get what eager gives."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 8)).eval()
    served = fxstack.compile(model)

    def serve(number: int) -> Tensor:
        batch = torch.full((1 + number % 7, 32), number / 100)
        with torch.no_grad():
            found: Tensor = served(batch)
            torch.testing.assert_close(found, model(batch))
        return found

    with fxstack.recording() as record, ThreadPoolExecutor(8) as pool:
        results = list(pool.map(serve, range(200)))
    graphs = sum(graph["dialect"] == "torch" for graph in record.data()["graphs"])
    print(f"{len(results)} requests, {graphs} graphs")


if __name__ == "__main__":
    main()
