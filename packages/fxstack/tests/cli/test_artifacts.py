from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import fxstack
import fxstack_artifact
from fxstack.cli import artifacts, main

PROGRAM = """
import torch
def make():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()).eval(), (torch.ones(3, 8),)
def broken():
    def prints(x):
        print("seen")
        return x + 1
    return prints, (torch.ones(3),)
def varying():
    return *make(), {"input": {0: "batch"}}
def several():
    model, _ = make()
    return {"prefill": (model, (torch.ones(3, 8),), {"input": {0: "length"}}), "decode": (model, (torch.ones(1, 8),))}
def nearly():
    return {"prefill": make()[0]}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A file with a model, and with a function that is not one graph."""
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


def test_a_program_becomes_a_file_that_can_be_loaded_and_inspected(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", str(program), "--json"]) == 0
    made = program.with_suffix(".fxa")
    assert json.loads(capsys.readouterr().out) == {"artifact": str(made), "bytes": made.stat().st_size}
    namespace: dict[str, object] = {}
    exec(PROGRAM, namespace)
    model, arguments = namespace["make"]()  # type: ignore[operator]
    with torch.no_grad():
        assert torch.allclose(fxstack.load(made)(*arguments), model(*arguments))
    assert main(["inspect", str(made)]) == 0
    text = capsys.readouterr().out
    assert "forward: inference" in text
    assert "input: float32[3, 8]" in text
    assert "2 constants" in text
    assert main(["inspect", str(made), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["entry_points"].keys() == {"forward"}


def test_both_programs_of_a_file_are_shown(
    program: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["compile", str(program)]) == 0
    made = program.with_suffix(".fxa")
    found = fxstack_artifact.inspect(made)
    there = {"entry_points": {"there": found["entry_points"]["forward"]}, "constants": []}
    monkeypatch.setattr(artifacts, "inspected", lambda *_, **__: {**found, "on_gpu": there})
    assert main(["inspect", str(made)]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("the program for GPUs:")
    assert lines[at - 1] == "2 constants"
    assert lines[at + 1] == "there: inference"
    assert lines[-1] == "0 constants"


def test_sizes_vary_where_the_file_names_them(program: Path) -> None:
    made = program.with_suffix(".fxa")
    assert main(["compile", str(program), "--make", "varying"]) == 0
    with torch.no_grad():
        assert fxstack.load(made)(torch.ones(7, 8)).shape == (7, 4)


def test_artifacts_are_trained_and_signed(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("cryptography", reason="the optional package cryptography signs and checks")
    key, made = str(tmp_path / "key"), str(program.with_suffix(".fxa"))
    assert main(["new-key", key, "--json"]) == 0
    public = json.loads(capsys.readouterr().out)["public"]
    assert main(["new-key", key]) == 1
    assert main(["compile", str(program), "--training"]) == 0
    assert main(["inspect", made, "--signed-by", public]) == 1
    assert "FXA111" in capsys.readouterr().err
    assert main(["sign", made, "--key", key]) == 0
    assert "signed by" in capsys.readouterr().out
    assert main(["inspect", made, "--signed-by", public]) == 0
    assert "forward: training" in capsys.readouterr().out
    assert main(["compile", str(program), "--sign-with", key]) == 0
    assert main(["inspect", made]) == 0
    assert "not checked" in capsys.readouterr().out
    assert main(["sign", made, "--key", public]) == 1
    assert fxstack.load(made, signed_by=public)


def test_what_cannot_be_compiled_or_is_no_artifact_is_refused_with_a_reason(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "broken.fxa"
    assert main(["compile", str(program), "--make", "broken", "-o", str(output)]) == 1
    assert "print() writes to the terminal" in capsys.readouterr().err
    assert not output.exists()
    assert main(["inspect", str(program)]) == 1
    assert "FXA101" in capsys.readouterr().err


def test_what_a_program_raises_is_shown_from_its_own_lines_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "program.py"
    file.write_text(
        "def make():\n    def fails(x):\n        raise KeyError('mine')\n    return fails, (1,)\n"
    )
    for command in (["compile", str(file)], ["bench", str(file), "--seconds", "0"]):
        assert main([*command, "--json"]) == 1
        said = capsys.readouterr()
        told, lines = json.loads(said.out)["error"], said.err[said.err.index("Traceback") :].splitlines()
        assert told == {"code": None, "message": f"{file} raises KeyError: 'mine'"}
        assert lines[1] == f'  File "{file}", line 3, in fails'
        assert lines[-1] == "KeyError: 'mine'"
        assert "fxstack/cli" not in said.err
    file.write_text("raise ValueError('at import')\n")
    assert main(["compile", str(file)]) == 1
    assert "fxstack/cli" not in capsys.readouterr().err


def test_what_is_refused_is_a_document_too(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(program), "--make", "broken", "--json"]) == 1
    found = json.loads(capsys.readouterr().out.splitlines()[-1])["error"]  # behind what the program prints
    assert found["code"] == "FXS501"
    assert "print() writes to the terminal" in found["message"]
    assert main(["inspect", str(program.with_name("none")), "--json"]) == 2
    assert "does not exist" in json.loads(capsys.readouterr().out)["error"]["message"]
    assert main(["inspect", str(program)]) == 1
    assert capsys.readouterr().out == ""


def test_several_entry_points_with_weights_beside(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", str(program), "--make", "several", "--weights", "beside", "--json"]) == 0
    made = program.with_suffix(".fxa")
    beside = made.with_name("program.fxa.safetensors")
    assert json.loads(capsys.readouterr().out) == {
        "artifact": str(made), "bytes": made.stat().st_size, "weights": str(beside)
    }  # fmt: skip
    loaded = fxstack.load(made)
    with torch.no_grad():
        torch.testing.assert_close(
            loaded["prefill"](torch.ones(5, 8))[:1], loaded["decode"](torch.ones(1, 8))
        )
    assert main(["inspect", str(made)]) == 0
    text = capsys.readouterr().out
    assert "input: float32[length, 8]" in text
    assert "length: 2 or more" in text
    assert "2 constants\nweights beside it in program.fxa.safetensors" in text
    assert main(["compile", str(program), "--make", "nearly"]) == 2
    assert "nearly() of" in (told := capsys.readouterr().err)
    assert "a dict with 'prefill': Sequential, not (callable, arguments), or a dict" in told
