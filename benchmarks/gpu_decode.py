"""``python -m benchmarks.gpu_decode``: one token after the other by GPT-2 with a static cache, on a GPU.

A step takes the last tokens and gives the next ones, so that no step can begin before its tokens are chosen. Times are
milliseconds a step over a run of steps, between events on the stream, the systems in turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.gpu import elapsed
from benchmarks.worker import _compile

SYSTEMS = ("eager", "stock", "stock reduce-overhead", "fxstack", "fxstack reduce-overhead")
LENGTH = 256
"""Room in the cache."""


def compiled(system: str, model: Any) -> Any:
    """The model under a system, with the mode, or the activation budget, that stands behind its name."""
    name, _, mode = system.partition(" ")
    if mode.startswith("budget "):
        return _compile(name, model, options={"activation_budget": float(mode.removeprefix("budget "))})
    return _compile(name, model) if not mode else _compile(name, model, mode=mode)


def decoder(
    system: str, batch: int, dtype: torch.dtype, config: Any
) -> Callable[..., tuple[torch.Tensor, torch.Tensor]]:
    """What decodes so many tokens, warmed up: the tokens, [batch, steps], and the last logits. It takes the tokens that
    it is given, or those that it chooses."""
    import transformers

    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config).eval().cuda().to(dtype)
    cache = transformers.StaticCache(config=config, max_cache_len=LENGTH)
    first = torch.randint(0, config.vocab_size, (batch, 1), device="cuda")
    places = torch.arange(LENGTH, device="cuda")
    call = compiled(system, model)

    def decode(steps: int, given: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        tokens, chosen = first, []
        with torch.no_grad():
            cache.reset()
            for step in range(steps):
                place = places[step : step + 1]
                logits = call(
                    tokens, past_key_values=cache, position_ids=place[None], cache_position=place
                ).logits
                tokens = (
                    logits[:, -1:].argmax(-1) if given is None else given[:, step : step + 1].contiguous()
                )
                chosen.append(tokens)
        return torch.cat(chosen, 1), logits

    decode(8)
    return decode


def main() -> None:
    """Measure what the arguments name; one JSON line for each batch size."""
    import transformers

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--layers", type=int, default=12)
    options = parser.parse_args()
    config = transformers.GPT2Config(n_layer=options.layers)
    for batch in options.batches:
        made = {s: decoder(s, batch, getattr(torch, options.dtype), config) for s in options.systems}
        tokens, logits = made[options.systems[0]](8)
        expected = logits.float()
        times: dict[str, list[float]] = {system: [] for system in made}
        for _ in range(options.rounds):
            for system, decode in made.items():
                times[system].append(elapsed(lambda decode=decode: decode(options.steps)))  # type: ignore[misc]
        line: dict[str, Any] = {"batch": batch, "card": torch.cuda.get_device_name()}
        for system, measured in times.items():
            line[f"{system} ms"] = round(1e3 * statistics.median(measured) / options.steps, 4)
        line["largest difference"] = {
            system: round(
                float((decode(8, tokens)[1].float() - expected).abs().max() / expected.abs().max()), 5
            )
            for system, decode in made.items()
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
