"""A remote cache: asked where the local one has nothing, and believed on somebody's word only."""

from __future__ import annotations

import http.server
import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import fxstack
from fxstack.cache import CacheError
from fxstack.cli import main
from inductor_codegen.cache import ArtifactStore
from inductor_codegen.native import cpu


@pytest.fixture
def compiler_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one with each library that is built."""
    calls: list[int] = []
    build = cpu.build_library
    monkeypatch.setattr(cpu, "build_library", lambda *args: calls.append(1) or build(*args))
    return calls


def test_push_and_pull(
    compiled: ArtifactStore, elsewhere: ArtifactStore, url: str, keys: tuple[Path, Path], run: Any,
    compiler_calls: list[int],
) -> None:  # fmt: skip
    private, public = keys
    moved = fxstack.cache.push(url, sign_with=private)
    assert sorted(moved.keys) == sorted(compiled.keys())
    assert fxstack.cache.push(url, sign_with=private).keys == []
    with pytest.raises(CacheError, match="FXS701"):
        fxstack.cache.pull(url, cache_dir=elsewhere.folder)
    pulled = fxstack.cache.pull(url, signed_by=public, cache_dir=elsewhere.folder)
    assert sorted(pulled.keys) == sorted(moved.keys)
    assert pulled.bytes == moved.bytes
    before = len(compiler_calls)
    run(cache_dir=elsewhere.folder)
    assert len(compiler_calls) == before
    assert fxstack.cache.verify(url, signed_by=public).refused == {}


def test_a_compilation_asks_it(
    compiled: ArtifactStore, elsewhere: ArtifactStore, url: str, keys: tuple[Path, Path], run: Any,
    compiler_calls: list[int],
) -> None:  # fmt: skip
    fxstack.cache.push(url, sign_with=keys[0])
    before = len(compiler_calls)
    want = run()
    got = run(cache_dir=elsewhere.folder, remote_cache=url, remote_cache_key=str(keys[1]))
    assert torch.equal(got, want)
    assert len(compiler_calls) == before
    assert sorted(elsewhere.keys()) == sorted(compiled.keys())
    with pytest.raises(CacheError, match="FXS701"):
        run(cache_dir=elsewhere.folder / "2", remote_cache=url)


def test_what_is_not_believed_is_compiled(
    compiled: ArtifactStore, elsewhere: ArtifactStore, url: str, keys: tuple[Path, Path], run: Any,
    compiler_calls: list[int], caplog: pytest.LogCaptureFixture, tmp_path: Path,
) -> None:  # fmt: skip
    import fsspec

    fxstack.cache.push(url)  # not signed
    before = len(compiler_calls)
    with caplog.at_level(logging.WARNING, "fxstack"):
        run(cache_dir=elsewhere.folder, remote_cache=url, remote_cache_key=str(keys[1]))
    assert len(compiler_calls) == before + 1
    assert "FXA111" in caplog.text
    files, root = fsspec.core.url_to_fs(url)
    names = sorted(files.find(root))
    one, other = (files.cat_file(name) for name in names)
    files.pipe_file(names[0], other)  # under the name of another entry
    files.pipe_file(names[1], other[:-1])
    refused = fxstack.cache.verify(url, trusted=True).refused
    assert sorted(code[1:7] for code in refused.values()) == ["FXA102", "FXS703"]
    pulled = fxstack.cache.pull(url, trusted=True, cache_dir=tmp_path / "third")
    assert pulled.keys == []
    assert len(pulled.refused) == 2
    assert ArtifactStore(tmp_path / "third").keys() == []
    assert one != other


def test_it_is_bounded(compiled: ArtifactStore, tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="the optional package fsspec reaches remote caches")
    import os

    folder = tmp_path / "remote"
    fxstack.cache.push(str(folder))
    made = sorted(folder.rglob("*.fxc"))
    assert len(made) == len(compiled.keys()) == 2
    assert not list(folder.rglob("*.new"))
    os.utime(made[0], (1, 1))
    assert fxstack.cache.push(str(folder), max_age=3600).dropped == [made[0].stem]
    assert fxstack.cache.push(str(folder), max_bytes=10).dropped
    assert not list(folder.rglob("*.fxc"))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """The address of a web server that gives out a folder, and the folder."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(folder))

        def log_message(self, format: str, *args: Any) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/cache", folder
        server.shutdown()
        thread.join()


def test_http_is_read(
    compiled: ArtifactStore, elsewhere: ArtifactStore, served: tuple[str, Path], keys: tuple[Path, Path],
    run: Any, compiler_calls: list[int],
) -> None:  # fmt: skip
    pytest.importorskip("aiohttp", reason="fsspec needs aiohttp for web servers")
    url, folder = served
    fxstack.cache.push(str(folder / "cache"), sign_with=keys[0])
    before = len(compiler_calls)
    run(cache_dir=elsewhere.folder, remote_cache=url, remote_cache_key=str(keys[1]))
    assert len(compiler_calls) == before
    with pytest.raises(CacheError, match=r"FXS705.*another cannot be .*: ClientResponseError: 501"):
        fxstack.cache.push(url.replace("cache", "another"))
    web = fxstack.cache.verify(url, trusted=True)
    assert len(web.keys) == 2
    assert web.bytes > 1000  # which the server does not tell


def test_an_object_store(
    compiled: ArtifactStore, elsewhere: ArtifactStore, run: Any, compiler_calls: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """S3, by a server that speaks its protocol."""
    s3fs = pytest.importorskip("s3fs", reason="fsspec needs s3fs for S3")
    moto = pytest.importorskip("moto.server", reason="the server is moto's")
    server = moto.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    address, port = server.get_host_and_port()
    keys = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "none")
    for name, value in {**keys, "AWS_ENDPOINT_URL": f"http://{address}:{port}"}.items():
        monkeypatch.setenv(name, value)
    try:
        store = s3fs.S3FileSystem(skip_instance_cache=True)
        store.mkdir("team")
        assert len(fxstack.cache.push("s3://team/cache").keys) == 2
        assert fxstack.cache.push("s3://team/cache").keys == []
        before = len(compiler_calls)
        run(cache_dir=elsewhere.folder, remote_cache="s3://team/cache", remote_cache_trusted=True)
        assert len(compiler_calls) == before
        victim = next(path for path in store.find("team") if path.endswith(".fxc"))
        store.pipe(victim, store.cat(victim)[:-1])
        assert len(fxstack.cache.verify("s3://team/cache", trusted=True).refused) == 1
        assert len(fxstack.cache.push("s3://team/cache", max_bytes=0).dropped) == 2
        assert store.find("team", refresh=True) == []
    finally:
        server.stop()


def test_a_place_that_does_not_answer_is_no_failure(
    elsewhere: ArtifactStore, run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("aiohttp", reason="fsspec needs aiohttp for web servers")
    with caplog.at_level(logging.WARNING, "fxstack"):
        run(cache_dir=elsewhere.folder, remote_cache="http://127.0.0.1:9/cache", remote_cache_trusted=True)
    assert "is not used" in caplog.text
    assert elsewhere.keys()


def test_unknown_addresses_are_told() -> None:
    pytest.importorskip("fsspec", reason="the optional package fsspec reaches remote caches")
    with pytest.raises(CacheError, match="FXS704"):
        fxstack.cache.pull("nothing-such://x", trusted=True)


def test_the_command_line(
    compiled: ArtifactStore, tmp_path: Path, keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    pytest.importorskip("fsspec", reason="the optional package fsspec reaches remote caches")
    private, public = map(str, keys)
    remote, file = str(tmp_path / "remote"), str(tmp_path / "cache.fxc")

    def said(*arguments: str, status: int = 0) -> Any:
        assert main(["cache", *arguments, "--json"]) == status
        text = capsys.readouterr().out
        return json.loads(text) if text else None

    assert len(said("push", remote, "--sign-with", private)["pushed"]) == 2
    assert len(said("export", file, "--sign-with", private)["entries"]) == 2
    assert len(said("verify", remote, "--signed-by", public)["whole"]) == 2
    monkeypatch.setenv("FXSTACK_CACHE_DIR", str(tmp_path / "elsewhere"))
    said("pull", remote, status=1)
    said("import", file, status=1)
    assert len(said("pull", remote, "--signed-by", public)["pulled"]) == 2
    assert said("import", file, "--signed-by", public)["new"] == []
    victim = next(Path(remote).rglob("*.fxc"))
    victim.write_bytes(victim.read_bytes()[:-1])
    assert victim.stem in said("verify", remote, "--trusted", status=1)["refused"]
    assert main(["cache", "push", remote, "--max-size", "0"]) == 0
    assert "dropped" in capsys.readouterr().out
