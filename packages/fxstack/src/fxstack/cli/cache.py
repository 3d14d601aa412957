"""``fxstack cache``: what is kept on disk, and how to have less of it."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click

from fxstack.cache import files, moving
from fxstack.cache.errors import CacheError
from fxstack.cli.output import as_json, mebibytes, say_json
from fxstack.options import default_cache_dir
from fxstack_artifact import ArtifactError
from inductor_codegen.cache import ArtifactStore

_SIZES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_TIMES = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class _Amount(click.ParamType[float]):
    """A number with a unit."""

    def __init__(self, name: str, units: dict[str, int], example: str) -> None:
        self.name = name
        self._units = units
        self._example = example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]?)(?:i?b)?", str(value).lower())
        if found is None or found[2] not in self._units:
            self.fail(f"{value!r} is not a {self.name}, such as {self._example}", param, ctx)
        return float(found[1]) * self._units[found[2]]


@click.group(invoke_without_command=True, short_help="Show, prune, clear or verify what is kept on disk.")
@click.pass_context
def cache(ctx: click.Context) -> int:
    """What is kept of earlier compilations: show (the default), prune, clear, verify; and elsewhere: export, import,
    push, pull."""
    return 0 if ctx.invoked_subcommand is not None else int(ctx.invoke(show, as_json=False))


@cache.command()
@as_json
def show(as_json: bool) -> int:
    """Say where the cache is, how many entries it has, and how much room they take."""
    store = ArtifactStore(default_cache_dir())
    entries = store.entries()
    total = sum(entry.size for entry in entries)
    if as_json:
        say_json(
            {"folder": str(store.folder), "entries": len(entries), "bytes": total, "most": store.max_bytes}
        )
        return 0
    click.echo(f"{store.folder}: {len(entries)} entries, {mebibytes(total)} of {mebibytes(store.max_bytes)}")
    if entries:
        now = time.time()
        click.echo(f"last used between {_ago(now - entries[-1].used)} and {_ago(now - entries[0].used)} ago")
    return 0


@cache.command()
@click.option(
    "--max-size", type=_Amount("size", _SIZES, "500M or 2G"), help="keep at most so much, as 500M or 2G"
)
@click.option(
    "--older-than",
    type=_Amount("time", _TIMES, "30d or 12h"),
    help="drop what was not used for 30d, 12h, ...",
)
@as_json
def prune(max_size: float | None, older_than: float | None, as_json: bool) -> int:
    """Drop the entries that were used least recently, by size, by age or both."""
    if max_size is None and older_than is None:
        raise click.UsageError("say how much is kept: --max-size, --older-than or both")
    store = ArtifactStore(default_cache_dir())
    since = None if older_than is None else time.time() - older_than
    doomed, kept = [], 0.0
    for entry in store.entries():
        kept += entry.size
        if (max_size is not None and kept > max_size) or (since is not None and entry.used < since):
            doomed.append(entry)
            kept -= entry.size
    return _dropped(store, [entry.key for entry in doomed], sum(entry.size for entry in doomed), as_json)


@cache.command()
@as_json
def clear(as_json: bool) -> int:
    """Drop every entry."""
    store = ArtifactStore(default_cache_dir())
    entries = store.entries()
    return _dropped(store, [entry.key for entry in entries], sum(entry.size for entry in entries), as_json)


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _word(command: Callable[..., int]) -> Callable[..., int]:
    """The options that say on whose word native code is taken."""
    key = click.option("--signed-by", multiple=True, type=_FILE, help="a public key that must have signed")
    trusted = click.option(
        "--trusted", is_flag=True, help="nobody else can write there: take it without a signature"
    )
    return key(trusted(command))


@cache.command()
@click.argument("url", required=False)
@_word
@as_json
def verify(url: str | None, signed_by: Sequence[Path], trusted: bool, as_json: bool) -> int:
    """Compare each entry with its hashes, and drop those that were changed; with URL, check a remote cache and drop
    nothing.

    Exit status: 0 if all were whole, 1 if some were not.
    """
    if url is not None:
        call = partial(moving.verify, url, signed_by=list(signed_by) or None, trusted=trusted)
        return _moved(url, "whole", call, "checking", as_json)
    store = ArtifactStore(default_cache_dir())
    damaged = []
    with _progress([entry.key for entry in store.entries()], "checking") as keys:
        for key in keys:
            if not store.is_whole(key):
                damaged.append(key)
                store.remove(key)
    if as_json:
        say_json({"folder": str(store.folder), "dropped": damaged})
    else:
        click.echo(f"{store.folder}: {len(damaged)} damaged entries" + (", dropped" if damaged else ""))
    return int(bool(damaged))


@cache.command("export")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--sign-with", type=_FILE, help="a file with a private key")
@as_json
def export_file(file: Path, sign_with: Path | None, as_json: bool) -> int:
    """Write the cache to FILE, for `fxstack cache import` elsewhere.

    Exit status: 0, or 1 if it cannot be written.
    """
    with _told():
        keys = files.export(file, sign_with=sign_with)
    if as_json:
        say_json({"file": str(file), "entries": keys, "bytes": file.stat().st_size})
    else:
        click.echo(f"{file}: {len(keys)} entries, {mebibytes(file.stat().st_size)}")
    return 0


@cache.command("import")
@click.argument("file", type=_FILE)
@_word
@as_json
def import_file(file: Path, signed_by: Sequence[Path], trusted: bool, as_json: bool) -> int:
    """Take the entries of FILE, which `fxstack cache export` wrote. All of it is checked before any is kept.

    Exit status: 0, or 1 if it is refused.
    """
    with _told():
        keys = files.import_(file, signed_by=list(signed_by) or None, trusted=trusted)
    if as_json:
        say_json({"file": str(file), "new": keys})
    else:
        click.echo(f"{file}: {len(keys)} new entries")
    return 0


@cache.command()
@click.argument("url")
@click.option("--sign-with", type=_FILE, help="a file with a private key")
@click.option("--max-size", type=_Amount("size", _SIZES, "500M or 2G"), help="keep at most so much there")
@click.option(
    "--older-than", type=_Amount("time", _TIMES, "30d or 12h"), help="drop there what was written before"
)
@as_json
def push(
    url: str, sign_with: Path | None, max_size: float | None, older_than: float | None, as_json: bool
) -> int:
    """Copy what the cache at URL (a folder, s3://..., memory://...) has not yet to it.

    Exit status: 0, or 1 if it cannot be written.
    """
    most = None if max_size is None else int(max_size)
    call = partial(moving.push, url, sign_with=sign_with, max_bytes=most, max_age=older_than)
    return _moved(url, "pushed", call, "pushing", as_json)


@cache.command()
@click.argument("url")
@_word
@as_json
def pull(url: str, signed_by: Sequence[Path], trusted: bool, as_json: bool) -> int:
    """Copy what the cache at URL has and this one has not. Each entry is checked before it is kept.

    Exit status: 0, or 1 if entries were refused or URL cannot be read.
    """
    call = partial(moving.pull, url, signed_by=list(signed_by) or None, trusted=trusted)
    return _moved(url, "pulled", call, "pulling", as_json)


def _moved(url: str, verb: str, call: Callable[..., moving.Moved], label: str, as_json: bool) -> int:
    def each(keys: Sequence[str]) -> Iterator[str]:
        with _progress(list(keys), label) as shown:
            yield from shown

    with _told():
        moved = call(each=each)
    if as_json:
        say_json(
            {
                "url": url,
                verb: list(moved.keys),
                "bytes": moved.bytes,
                "refused": dict(moved.refused),
                "dropped": list(moved.dropped),
            }
        )
    else:
        dropped = f", {len(moved.dropped)} dropped" if moved.dropped else ""
        click.echo(f"{url}: {len(moved.keys)} entries {verb}, {mebibytes(moved.bytes)}{dropped}")
        for key, why in moved.refused.items():
            click.echo(f"  refused {key}: {why}")
    return int(bool(moved.refused))


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (ArtifactError, CacheError, OSError) as error:
        raise click.ClickException(str(error)) from error


def _dropped(store: ArtifactStore, keys: list[str], size: int, as_json: bool) -> int:
    with _progress(keys, "dropping") as doomed:
        for key in doomed:
            store.remove(key)
    if as_json:
        say_json({"folder": str(store.folder), "dropped": keys, "bytes": size})
    else:
        click.echo(f"{store.folder}: {len(keys)} entries dropped, {mebibytes(size)}")
    return 0


def _progress(items: list[str], label: str) -> Any:
    """A bar on standard error; where that is no terminal, only what is done."""
    return click.progressbar(items, label=label, file=sys.stderr)


def _ago(seconds: float) -> str:
    for unit in ("d", "h", "m"):
        if seconds >= _TIMES[unit]:
            return f"{seconds / _TIMES[unit]:.0f} {unit}"
    return f"{seconds:.0f} s"
