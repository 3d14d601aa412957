"""The artifact store: what is put comes back, what was damaged does not, and concurrent makers make once."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_codegen.cache import ArtifactStore, content_key, process_store, temporary_store
from inductor_codegen.native_errors import CompilationError
from inductor_codegen.trusted import Folder

KEY = content_key("k")


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "store")


def test_puts_and_gets(store: ArtifactStore) -> None:
    assert store.get(KEY) is None
    put = store.put(KEY, {"a": [1, None, "x"]}, {"lib.so": b"\x00\x01", "log": b""})
    assert put.files["lib.so"].read_bytes() == b"\x00\x01"
    assert store.get(KEY) == put
    assert ArtifactStore(store.folder).get(KEY) == put
    assert store.keys() == [KEY]
    replaced = store.put(KEY, {"a": 2})
    assert store.get(KEY) == replaced
    assert not replaced.files
    store.remove(KEY)
    assert store.get(KEY) is None
    store.remove(KEY)
    assert sorted(path.name for path in store.folder.iterdir()) == [KEY[:2]]


LEAVES = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text()
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    LEAVES | NUMBERS,
    lambda leaf: st.lists(leaf, max_size=3) | st.dictionaries(st.text(), leaf, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_any_json_comes_back(tmp_path_factory: pytest.TempPathFactory, metadata: Any) -> None:
    store = ArtifactStore(tmp_path_factory.getbasetemp() / "json-store")
    store.put(KEY, metadata)
    found = store.get(KEY)
    assert found is not None
    assert found.metadata == metadata


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def _edit_metadata(path: Path) -> None:
    entry = json.loads(path.read_text())
    entry["metadata"]["n"] = 2
    path.write_text(json.dumps(entry))


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: _flip(entry / "lib.so"),
        lambda entry: (entry / "lib.so").write_bytes(b""),
        lambda entry: (entry / "lib.so").unlink(),
        lambda entry: (entry / "entry.json").write_text("{"),
        lambda entry: (entry / "entry.json").write_text("[]"),
        lambda entry: (entry / "entry.json").write_bytes(b"\xff\xfe"),
        lambda entry: _edit_metadata(entry / "entry.json"),
        lambda entry: (entry / "entry.json").write_text("[" * 200_000),
    ],
    ids=["flipped", "truncated", "missing", "not json", "other json", "not text", "edited", "too deep"],
)
def test_a_damaged_entry_is_logged_and_made_again(
    store: ArtifactStore, caplog: pytest.LogCaptureFixture, damage: Any
) -> None:
    store.put(KEY, {"n": 1}, {"lib.so": b"code"})
    damage(store.folder / KEY[:2] / KEY)
    with caplog.at_level(logging.WARNING, "inductor_codegen"):
        assert store.get(KEY) is None
    assert "damaged" in caplog.text
    assert store.keys() == []
    assert store.get_or_create(KEY, lambda folder: ({"n": 1}, {"lib.so": b"code"})).metadata == {"n": 1}
    assert store.get(KEY) is not None


def test_an_entry_under_another_key_is_not_believed(store: ArtifactStore) -> None:
    other = content_key("other")
    store.put(KEY, 1)
    target = store.folder / other[:2]
    target.mkdir(exist_ok=True)
    os.rename(store.folder / KEY[:2] / KEY, target / other)
    assert store.get(other) is None


def test_a_folder_that_others_may_write_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ArtifactStore(tmp_path / "open").put(KEY, 1, {"lib.so": b"code"})
    (tmp_path / "open").chmod(0o777)
    store = ArtifactStore(tmp_path / "open")
    assert store.get(KEY) is None
    assert "another user" in caplog.text
    made = store.get_or_create(KEY, lambda folder: (2, {"lib.so": b"mine"}))
    assert made.metadata == 2
    assert made.files["lib.so"].read_bytes() == b"mine"
    assert tmp_path not in made.files["lib.so"].parents


def test_a_folder_that_cannot_be_made_is_no_obstacle(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    store = ArtifactStore(tmp_path / "file" / "store")

    def create(folder: Folder) -> tuple[Any, Mapping[str, bytes]]:
        folder.write("a.so", b"a")
        return 7, {"a.so": folder.read("a.so")}

    made = store.get_or_create(content_key("in the way"), create)
    assert (made.metadata, made.files["a.so"].read_bytes()) == (7, b"a")
    assert "cannot be used" in caplog.text


def test_keys_are_hexadecimal(store: ArtifactStore) -> None:
    for bad in ("", "../../etc", "ABC", "a/b"):
        with pytest.raises(ValueError, match="hexadecimal"):
            store.get(bad)


def test_keys_depend_on_parts_and_their_borders() -> None:
    keys = {content_key(*parts) for parts in [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), (b"abc", "x")]}
    assert len(keys) == 5
    assert content_key("a") == content_key(b"a")


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    keys = [content_key(str(i)) for i in range(4)]
    for age, key in enumerate(keys[:3]):
        store.put(key, None, {"f": b"x" * 600})
        os.utime(tmp_path / key[:2] / key / "entry.json", (1000 + age, 1000 + age))
    assert store.get(keys[0]) is not None  # now the most recently used
    store.put(keys[3], None, {"f": b"x" * 600})
    assert len(store.keys()) == 4
    store = ArtifactStore(tmp_path, max_bytes=2000)
    store.trim()
    assert sorted(store.keys()) == sorted([keys[0], keys[3]])
    assert store.trim() <= 2000


def test_makers_in_threads_make_once(store: ArtifactStore) -> None:
    made: list[int] = []

    def create(folder: Folder) -> tuple[Any, Mapping[str, bytes]]:
        made.append(1)
        return 1, {}

    threads = [threading.Thread(target=store.get_or_create, args=(KEY, create)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]


_MAKER = """
import sys, time
from pathlib import Path
from inductor_codegen.cache import ArtifactStore
folder, log, key = sys.argv[1:]
def create(scratch):
    with open(log, "a") as file:
        file.write("made\\n")
    time.sleep(0.3)
    return 1, {"f": b"x"}
ArtifactStore(Path(folder)).get_or_create(key, create)
"""


def test_makers_in_processes_make_once(store: ArtifactStore, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", _MAKER, str(store.folder), str(log), KEY]
    running = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(60) for process in running] == [0, 0]
    assert log.read_text() == "made\n"


def test_a_failing_maker_leaves_nothing(store: ArtifactStore) -> None:
    def create(folder: Folder) -> tuple[Any, Mapping[str, bytes]]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.get_or_create(KEY, create)
    assert store.get(KEY) is None
    assert not [path for path in store.folder.iterdir() if path.name.startswith(".new")]


def test_a_folder_without_room_is_no_obstacle(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def create(folder: Folder) -> tuple[Any, Mapping[str, bytes]]:
        if store.folder in folder.path.parents:
            raise OSError(28, "No space left on device", str(folder.path))
        return 1, {"a.so": b"a"}

    made = store.get_or_create(content_key("no room"), create)
    assert process_store().folder in made.files["a.so"].parents
    assert "No space left" in caplog.text
    monkeypatch.setattr("inductor_codegen.temporary.places", lambda: [str(store.folder / "absent")])
    with pytest.raises(CompilationError, match="IND115"), temporary_store():
        pytest.fail("there is no place")


def test_all_entries_can_be_dropped(store: ArtifactStore) -> None:
    for name in ("a", "b"):
        store.put(content_key(name), None, {"f": b"x" * 100})
    assert store.size() > 200
    store.clear()
    assert (store.keys(), store.size()) == ([], 0)


_KILLED = """
import os, signal, sys
from pathlib import Path
from inductor_codegen.cache import ArtifactStore, process_store
def create(scratch):
    scratch.write("half", b"written")
    print(process_store().folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
ArtifactStore(Path(sys.argv[1])).get_or_create(sys.argv[2], create)
"""


def test_what_a_killed_process_left_is_removed(
    store: ArtifactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = [sys.executable, "-c", _KILLED, str(store.folder), KEY]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    left = Path(done.stdout.strip())
    assert left.parent == tmp_path
    assert left.exists()
    assert [name for name in os.listdir(store.folder) if name.startswith(".new-")]
    with temporary_store() as held:
        store.put(KEY, 1)
        assert held.folder.exists()
    assert not left.exists()
    assert not [name for name in os.listdir(store.folder) if name.startswith(".new-")]


def test_entries_say_when_they_were_used_and_looking_at_them_is_no_use(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    for age, key in enumerate(("ab", "cd")):
        store.put(key, None, {"library": b"xyz"})
        os.utime(tmp_path / key / key / "entry.json", (1000 - age, 1000 - age))
    assert [(entry.key, entry.used) for entry in store.entries()] == [("ab", 1000), ("cd", 999)]
    assert sum(entry.size for entry in store.entries()) == store.size()
    assert store.is_whole("ab")
    assert not store.is_whole("ef")
    (tmp_path / "cd" / "cd" / "library").write_bytes(b"xyw")
    assert not store.is_whole("cd")
    assert [entry.used for entry in store.entries()] == [1000, 999]


def test_what_is_not_there_is_asked_for_once(tmp_path: Path) -> None:
    asked = []

    def beyond(key: str) -> tuple[Any, dict[str, bytes]] | None:
        asked.append(key)
        return ({"from": "elsewhere"}, {"file": b"content"}) if key == "aa" else None

    store = ArtifactStore(tmp_path / "cache", beyond=beyond)
    found = store.get("aa")
    assert found is not None
    assert found.files["file"].read_bytes() == b"content"
    assert store.get("aa") is not None
    assert store.get("bb") is None
    assert store.get("bb") is None
    assert asked == ["aa", "bb"]
    assert ArtifactStore(tmp_path / "cache").content("aa") == ({"from": "elsewhere"}, {"file": b"content"})


def test_the_content_of_a_damaged_entry_is_none(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "cache")
    found = store.put("aa", [1], {"file": b"content"})
    assert store.content("aa") == ([1], {"file": b"content"})
    assert store.content("bb") is None
    found.files["file"].write_bytes(b"other")
    assert store.content("aa") is None
