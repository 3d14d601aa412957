from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import fxstack
from fxstack.options import OptionError


@pytest.fixture(autouse=True)
def no_level_stays() -> Iterator[None]:
    """Levels and handlers of the stack's loggers are afterwards what they were before."""
    loggers = [logging.getLogger("fxstack"), *(logging.getLogger(f"fxstack.{name}") for name in _NAMES)]
    before = [(logger.level, list(logger.handlers)) for logger in loggers]
    yield
    assert [(logger.level, list(logger.handlers)) for logger in loggers] == before


_NAMES = ("graphs", "breaks", "guards", "recompiles", "schedule", "kernels", "cache", "timing")


def _shown(x: torch.Tensor) -> torch.Tensor:
    print("seen")
    return x * 2


def _program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    z = torch.relu(x @ y) + 1
    return torch.softmax(_shown(z), -1)


def _run(*sizes: int) -> None:
    compiled = fxstack.compile(_program)
    for size in sizes:
        compiled(torch.ones(size, 5), torch.ones(5, 6))


def _said(caplog: pytest.LogCaptureFixture, *topics: str, sizes: tuple[int, ...] = (4,)) -> list[str]:
    with fxstack.logging(*topics):
        _run(*sizes)
    return [
        record.getMessage() for record in caplog.records if record.name == f"fxstack.{topics[0].lstrip('+')}"
    ]


_HEAD = f"_program ({__file__}:{_program.__code__.co_firstlineno}) "


def test_every_message_begins_with_the_function_and_its_line(caplog: pytest.LogCaptureFixture) -> None:
    with fxstack.logging():
        _run(4, 7)
    assert {record.name for record in caplog.records} == {f"fxstack.{name}" for name in _NAMES}
    assert all(record.getMessage().startswith(_HEAD) for record in caplog.records)


class _Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) + 1


def test_of_a_module_the_line_is_that_of_forward(caplog: pytest.LogCaptureFixture) -> None:
    model = fxstack.compile(_Model())
    with fxstack.logging():
        for size in (4, 7):
            model(torch.ones(size))
    head = f"_Model ({__file__}:{_Model.forward.__code__.co_firstlineno}) "
    texts = [record.getMessage() for record in caplog.records]
    assert any("is compiled again" in text for text in texts)
    assert all(text.startswith(head) for text in texts)
    assert not any("dynamo_capture" in text for text in texts)


def test_graphs_are_those_of_capture_and_with_a_plus_of_each_stage(caplog: pytest.LogCaptureFixture) -> None:
    captured, rest = _said(caplog, "graphs")
    line = _program.__code__.co_firstlineno + 1
    assert f"%relu: float32[4, 6] = torch.relu(%matmul)   # {__file__}:{line} in _program" in captured
    assert "torch.softmax" in rest
    caplog.clear()
    fxstack.reset()
    detailed = _said(caplog, "+graphs", sizes=(5,))
    assert ["graph(torch)" in text for text in detailed] == [True, False, False, True, False, False]
    assert "aten.relu.default" in detailed[1]
    assert "prims.maximum" in detailed[2]


def test_breaks_say_where_why_and_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    (text,) = _said(caplog, "breaks")
    line = _shown.__code__.co_firstlineno + 1
    assert "graph break [CAP236] print() writes to the terminal" in text
    assert f"at {__file__}:{line} in _shown" in text
    assert "to do: " in text


def test_recompiles_say_the_old_and_the_new_value(caplog: pytest.LogCaptureFixture) -> None:
    first, *_ = _said(caplog, "recompiles", sizes=(4, 7))
    line = _program.__code__.co_firstlineno + 1
    assert "is compiled again: x: was sizes [4, 5], is [7, 5]" in first
    assert f"relied on at {__file__}:{line} in _program" in first


def test_guards_are_lines_in_the_users_words(caplog: pytest.LogCaptureFixture) -> None:
    first, *_ = _said(caplog, "guards")
    line = next(line for line in first.splitlines() if line.startswith("  x: "))
    assert "sizes=(4, 5)" in line
    assert line.endswith("in _program")
    assert "identity" not in first


def test_schedule_kernels_and_cache(caplog: pytest.LogCaptureFixture, cache_dir: Path) -> None:
    with fxstack.logging("schedule", "kernels", "cache"):
        _run(4)
    text = {name: [r.getMessage() for r in caplog.records if r.name == f"fxstack.{name}"] for name in _NAMES}
    assert "1 kernels and 1 calls of torch's library" in text["schedule"][0]
    assert "96 bytes read, 96 written" in text["schedule"][0]
    assert any('extern "C"' in message for message in text["kernels"])
    assert any("characters compiled in" in message for message in text["kernels"])
    assert [" did not find the program " in message for message in text["cache"]] == [
        True,
        False,
        True,
        False,
    ]
    caplog.clear()
    fxstack.reset()
    with fxstack.logging("schedule", "kernels", "cache"):
        _run(4)
    assert [" found the program " in record.getMessage() for record in caplog.records] == [True, True]


def test_timing_indents_what_is_inside(caplog: pytest.LogCaptureFixture) -> None:
    texts = [text.removeprefix(_HEAD) for text in _said(caplog, "timing")]
    assert texts[0].startswith("  trace ")
    assert texts[0].endswith("(ended by Broken)")
    assert [text.split(" ")[0] for text in texts if not text.startswith(" ")] == ["frame", "frame"]


def test_what_runs_uncompiled_is_said(caplog: pytest.LogCaptureFixture) -> None:
    @fxstack.compile
    def raises(x: torch.Tensor) -> torch.Tensor:
        raise ValueError(x + 1)

    with fxstack.logging("breaks"), pytest.raises(ValueError, match="tensor"):
        raises(torch.ones(2))
    said = [record.getMessage() for record in caplog.records if record.name == "fxstack.breaks"]
    assert [text.partition(") ")[2] for text in said] == [
        "runs uncompiled: the program raises ValueError while it is captured"
    ]


def test_a_function_that_is_compiled_no_more_is_said(caplog: pytest.LogCaptureFixture) -> None:
    compiled = fxstack.compile(lambda x: x + 1, dynamic=False, recompile_limit=1)
    with fxstack.logging("breaks"):
        compiled(torch.ones(2))
        compiled(torch.ones(3))
    said = [record.getMessage() for record in caplog.records if record.name == "fxstack.breaks"]
    assert len(said) == 1
    assert "was compiled 1 times" in said[0]


def test_an_unknown_topic_is_refused_with_the_nearest() -> None:
    with pytest.raises(OptionError, match=r"(?s)FXS105.*'recompile'.*did you mean 'recompiles'") as caught:
        fxstack.logging("graphs", "recompile")
    assert caught.value.code == "FXS105"


def test_nothing_is_said_after_the_end(caplog: pytest.LogCaptureFixture) -> None:
    log = fxstack.logging("graphs")
    log.close()
    log.close()
    _run(4)
    assert not [record for record in caplog.records if record.name.startswith("fxstack.")]


def test_the_environment_switches_it_on_for_a_process(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch, fxstack\ndef doubled(x):\n    return x + x\nfxstack.compile(doubled)(torch.ones(3))\n"
    )
    environment = dict(os.environ, FXSTACK_LOGS="graphs,breaks")
    run = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=environment, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == ""
    assert run.stderr.startswith(f"[fxstack.graphs] doubled ({script}:2) captured\ngraph(torch):\n")
    wrong = subprocess.run(
        [sys.executable, "-c", "import fxstack"],
        capture_output=True,
        text=True,
        env=dict(os.environ, FXSTACK_LOGS="graph"),
        check=False,
    )
    assert wrong.returncode == 1
    assert "did you mean 'graphs'" in wrong.stderr


def test_handlers_of_the_program_are_used_instead_of_ours(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import logging, sys, torch, fxstack\n"
        "logging.basicConfig(stream=sys.stdout, format='mine %(name)s')\n"
        "with fxstack.logging('graphs'):\n"
        "    fxstack.compile(lambda x: x + x)(torch.ones(3))\n"
    )
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("mine fxstack.graphs\n", "")
