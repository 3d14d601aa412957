"""``fxstack.minify``: from a program that fails to a few lines that fail in the same way."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable
from pathlib import Path

from fx_interface.errors import StackError
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fxstack.minify.comparing import Settings
from fxstack.minify.outcomes import Outcome
from fxstack.minify.search import shortest
from fxstack.minify.trials import Trials

_MAIN = """\


if __name__ == "__main__":
    from fxstack.minify import Settings, check_file

    raise SystemExit(check_file(__file__{arguments}))
"""


class NothingToMinifyError(StackError):
    """The program does not fail, or eager fails as well: FXS601."""

    def __init__(self, found: Outcome) -> None:
        fine = found.kind == "ok"
        why = (
            "compiled, it does what it does in eager" + (f", and {found.detail}" if found.detail else "")
            if fine
            else f"it fails without compilation already ({found})"
        )
        action = (
            "name the --backend and options that it fails with, or --slower-than for a program that is slow"
            if fine
            else "mend that first: FILE must define program and INPUTS or CALLS, or be a script that ends well in eager"
        )
        super().__init__("FXS601", f"nothing to minify: {why}", action=action)


@dataclass(frozen=True, slots=True)
class Minified:
    """What ``minify`` found: ``text`` is the small program, which fails as ``outcome`` says; ``lines`` counts its code
    without ``INPUTS``, ``CALLS``, imports and blank lines, ``lines_before`` those of the original; ``trials`` were
    made in ``seconds``."""

    text: str
    outcome: Outcome
    lines: int
    lines_before: int
    trials: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.lines_before} lines became {self.lines} in {self.trials} trials, {self.seconds:.0f} s\n"
            f"{self.outcome}\n\n{self.text}"
        )


def minify(
    text: str,
    settings: Settings | None = None,
    *,
    seconds: float = 600.0,
    folder: str | Path = ".",
    progress: Callable[[int, int], None] = lambda lines, trials: None,
) -> Minified:
    """The smallest program found that fails as ``text`` does, in at most some ``seconds``.

    ``text`` is a Python program of one of two kinds. One that defines ``program``, a function or module, and ``INPUTS``
    (the positional arguments of a call) or ``CALLS`` (of several, in order), as the scripts of ``fxstack.verify`` do,
    is compared with itself compiled: results, exceptions, printed text, gradients, what is written to arguments,
    globals and the program's own state, random numbers. Any other is a script: it has to end well while compilation is
    off, and to fail by an exception, an exit status, a signal or a hang while ``torch.compile`` and ``fxstack.compile``
    are on.

    ``folder``: where modules are that the program imports. ``progress`` is called with the number of lines and of
    trials whenever the program has become smaller.

    Raises NothingToMinifyError (FXS601) if it does not fail, or already does in eager.
    """
    chosen = settings or Settings()
    start = time.monotonic()
    script = not is_program(text)
    original = text if script else _without_main(text)
    with Trials(chosen, script=script, folder=folder) as trials:
        wanted = trials.outcome(original)
        if not wanted.is_failure:
            raise NothingToMinifyError(wanted)

        def fails(candidate: str) -> bool:
            found = trials.outcome(candidate).is_like(wanted)
            if found:
                progress(lines_of(candidate), trials.count)
            return found

        small = shortest(original, fails, seconds)
        outcome = trials.outcome(small)
        main = "" if script else _MAIN.format(arguments=_arguments(chosen))
        return Minified(
            text=f'"""Minified by fxstack: {_title(outcome)}"""\n\n{small}\n{main}',
            outcome=outcome,
            lines=lines_of(small),
            lines_before=lines_of(original),
            trials=trials.count,
            seconds=time.monotonic() - start,
        )


def check_file(file: str | Path, settings: Settings | None = None) -> int:
    """Try a program of ``program`` and ``INPUTS`` once, print what it comes to, and return 1 if it fails."""
    text = Path(file).read_text(encoding="utf-8")
    with Trials(settings or Settings(), script=not is_program(text), folder=Path(file).parent) as trials:
        outcome = trials.outcome(_without_main(text) if is_program(text) else text)
    print(outcome)
    return int(outcome.is_failure)


def is_program(text: str) -> bool:
    """Whether a text defines ``program`` and its calls at its top level."""
    names: set[str] = set()
    for statement in ast.parse(text).body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            names.add(statement.name)
        elif isinstance(statement, ast.Assign):
            names |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
    return "program" in names and bool(names & {"INPUTS", "CALLS"})


def lines_of(text: str) -> int:
    """How many lines of code a program has, as Python would print it, without imports and the calls' arguments."""
    tree = ast.parse(text)
    kept = [
        statement
        for statement in tree.body
        if not isinstance(statement, (ast.Import, ast.ImportFrom))
        and not (isinstance(statement, ast.Assign) and _name(statement.targets[0]) in ("INPUTS", "CALLS"))
    ]
    printed = ast.unparse(ast.Module(kept, type_ignores=[]))
    return sum(1 for line in printed.splitlines() if line.strip())


def _without_main(text: str) -> str:
    """The program without its docstring and its block for runs as a script."""
    tree = ast.parse(text)
    tree.body = [
        statement
        for number, statement in enumerate(tree.body)
        if not (isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test))
        and not (
            number == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        )
    ]
    return ast.unparse(tree)


def _name(target: ast.expr) -> str | None:
    return target.id if isinstance(target, ast.Name) else None


def _title(outcome: Outcome) -> str:
    return str(outcome).replace("\\", "/").replace('"', "'").splitlines()[0]


def _arguments(settings: Settings) -> str:
    changed = {
        name: value
        for name in ("backend", "dynamic", "fullgraph", "slower_than")
        if (value := getattr(settings, name)) != getattr(Settings(), name)
    }
    if not changed:
        return ""
    return f", Settings({', '.join(f'{name}={value!r}' for name, value in changed.items())})"
