"""A web server that answers requests on several threads with a model from an artifact.

The serving part needs torch and fxstack-artifact alone: ``python examples/serve_artifact.py model.fxa`` on a machine
without the compiler. Without an argument a model is compiled first, and the server is tried.

python examples/serve_artifact.py
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import torch
from torch import nn

import fxstack_artifact

MOST_BYTES = 1 << 20
"""Of a request."""


class Server(ThreadingHTTPServer):
    """Answers ``POST /predict`` with ``{"x": rows of numbers}`` by ``{"y": rows of numbers}``; each request has a
    thread of its own, and all of them call one artifact. Leaving the server's block waits for requests under way: a
    thread that computes while the interpreter ends would end the process."""

    daemon_threads = False
    request_queue_size = 64

    def __init__(self, artifact: fxstack_artifact.Artifact, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.artifact = artifact

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}/predict"


class Handler(BaseHTTPRequestHandler):
    """One request: what does not fit the artifact's contract is the client's fault and said to it."""

    server: Server

    def do_POST(self) -> None:
        """Status 200, 400 for what is no such request, 404 for another path, 413 for a large one."""
        size = int(self.headers.get("Content-Length") or 0)
        if self.path != "/predict":
            return self.answer(404, {"error": "there is only /predict"})
        if size > MOST_BYTES:
            return self.answer(413, {"error": f"at most {MOST_BYTES} bytes"})
        try:
            x = torch.tensor(json.loads(self.rfile.read(size))["x"], dtype=torch.float32)
            y = self.server.artifact(x)
        except (KeyError, TypeError, ValueError) as error:  # a ContractError is a ValueError
            return self.answer(400, {"error": str(error)})
        return self.answer(200, {"y": y.tolist()})

    def answer(self, status: int, data: object) -> None:
        """Send JSON."""
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing for each request."""


def ask(address: str, rows: list[list[float]]) -> list[list[float]]:
    """The answer to one request. urllib.error.HTTPError for a refused one."""
    request = urllib.request.Request(address, json.dumps({"x": rows}).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=60) as response:
        answer: list[list[float]] = json.load(response)["y"]
    return answer


def compiled(folder: Path) -> tuple[nn.Module, Path]:
    """A model, and an artifact of it that takes up to 64 rows."""
    import fxstack  # where artifacts are made

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 4)).eval()
    shapes = [{0: fxstack.Dim("rows", max=64)}]
    return model, fxstack.aot_compile(
        model, (torch.randn(3, 16),), path=folder / "model.fxa", dynamic_shapes=shapes
    )


def main() -> None:
    """Serve what is named, or try the server with eight clients that send batches of different sizes."""
    if len(sys.argv) > 1:
        with Server(fxstack_artifact.load(sys.argv[1]), 8080) as server:
            print(f"listening on {server.address}")
            server.serve_forever()
        return
    with tempfile.TemporaryDirectory() as folder:
        model, path = compiled(Path(folder))
        with Server(fxstack_artifact.load(path)) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()

            def client(number: int) -> int:
                x = torch.full((2 + number % 7, 16), number / 100)
                with torch.no_grad():
                    torch.testing.assert_close(torch.tensor(ask(server.address, x.tolist())), model(x))
                return len(x)

            with ThreadPoolExecutor(8) as pool:
                rows = sum(pool.map(client, range(200)))
            for wrong in ([[1.0] * 15] * 2, [[1.0] * 16] * 65, [["a"]]):
                try:
                    ask(server.address, wrong)  # type: ignore[arg-type]
                except urllib.error.HTTPError as error:
                    print(error.code, json.load(error)["error"])
            server.shutdown()
    print(f"{rows} rows in 200 requests, answered as by eager")


if __name__ == "__main__":
    main()
