"""Dict versions are only used where every kind of change is seen to change them."""

from __future__ import annotations

from fx_guards import _native, torch_bridge


def test_versions_are_sound_here_or_off() -> None:
    sound = torch_bridge.use_dict_versions_if_sound()
    assert sound
    table: dict[str, int] = {"a": 1}
    before = _native.dict_version(table)
    table["a"] = 2
    assert (_native.dict_version(table) != before) is sound


def test_a_change_that_does_not_show_turns_them_off(monkeypatch: object) -> None:
    real = _native.dict_version
    try:
        _native.dict_version = lambda table: 7
        assert torch_bridge.use_dict_versions_if_sound() is False
    finally:
        _native.dict_version = real
        torch_bridge.use_dict_versions_if_sound()
