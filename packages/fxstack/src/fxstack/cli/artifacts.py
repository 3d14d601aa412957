"""``fxstack compile``, ``inspect``, ``sign``, ``new-key``: a program becomes a file that runs elsewhere; what is in
such a file, and who made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import click

from fx_interface.errors import StackError
from fxstack.artifacts.archive import beside_of
from fxstack.artifacts.compiling import aot_compile
from fxstack.artifacts.devices import CPU_TARGETS, GPU_TARGETS
from fxstack.artifacts.exporting import export
from fxstack.cli.output import OutputFile, as_json, say_json
from fxstack.cli.programs import Program, made_programs, running
from fxstack_artifact import ArtifactError, make_key
from fxstack_artifact import inspect as inspected
from fxstack_artifact import sign as signed

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(short_help="Write what make() of FILE returns as an artifact.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    help="FILE with the ending .fxa if not given",
)
@click.option("--make", "name", default="make", show_default=True, help="the function in FILE to call")
@click.option(
    "--target",
    "targets",
    multiple=True,
    type=click.Choice((*CPU_TARGETS, *GPU_TARGETS)),
    help="may be repeated; this processor if not given",
)
@click.option("--training", is_flag=True, help="with the backward, for what requires grad")
@click.option(
    "--weights",
    type=click.Choice(("inside", "beside", "outside")),
    default="inside",
    show_default=True,
    help="in the file, in OUTPUT.safetensors, or passed to fxstack.load",
)
@click.option("--sign-with", type=_FILE, help="a file with a private key to sign with")
@as_json
def compile(
    file: str,
    output: Path | None,
    name: str,
    targets: Sequence[str],
    training: bool,
    weights: Literal["inside", "beside", "outside"],
    sign_with: Path | None,
    as_json: bool,
) -> int:
    """Compile what the function make() of FILE returns to an artifact that fxstack.load runs: (callable, arguments), or
    (callable, arguments, dynamic_shapes) with the names of sizes that vary, as in {"x": {0: "batch"}}; or a dict of
    such tuples by the names of entry points, which share weights: {"prefill": ..., "decode": ...}.

    Exit status: 0, or 1 if it cannot be compiled.
    """
    programs = made_programs(file, name)
    place = Path(file).with_suffix(".fxa") if output is None else output
    click.echo("compiling ...", err=True)
    with running(file):
        try:
            written = _compiled(
                programs,
                training,
                path=place,
                target=list(targets) or None,
                weights=weights,
                sign_with=sign_with,
            )
        except (ArtifactError, StackError, OSError) as error:
            raise click.ClickException(str(error)) from error
    _say_written(written, beside_of(written) if weights == "beside" else None, as_json)
    return 0


def _say_written(artifact: Path, weights: Path | None, as_json: bool) -> None:
    size = artifact.stat().st_size
    if as_json:
        say_json(
            {
                "artifact": str(artifact),
                "bytes": size,
                **({} if weights is None else {"weights": str(weights)}),
            }
        )
    else:
        click.echo(f"{artifact}: {size:,} bytes" + ("" if weights is None else f"; weights: {weights}"))


def _compiled(programs: Mapping[str, Program], training: bool, **options: Any) -> Path:
    """The artifact of one program, or of several by names."""
    if list(programs) == ["forward"]:
        function, arguments, dynamic_shapes = programs["forward"]
        return aot_compile(
            function, *_call(arguments), dynamic_shapes=dynamic_shapes, training=training, **options
        )
    exports = {
        name: export(function, *_call(arguments), dynamic_shapes=dynamic_shapes, training=training)
        for name, (function, arguments, dynamic_shapes) in programs.items()
    }
    return aot_compile(exports, **options)


def _call(arguments: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    return ((), arguments) if isinstance(arguments, dict) else (arguments, {})


@click.command(short_help="Check an artifact, and say what is in it.")
@click.argument("artifact", type=_FILE)
@click.option("--signed-by", multiple=True, type=_FILE, help="demand a signature of one of these public keys")
@as_json
def inspect(artifact: Path, signed_by: Sequence[Path], as_json: bool) -> int:
    """Check ARTIFACT and say what is in it; nothing of it is loaded or run.

    Exit status: 0, or 1 if it is refused.
    """
    try:
        found = inspected(artifact, signed_by=list(signed_by) or None)
    except (ArtifactError, OSError) as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        say_json(found)
        return 0
    requires = ", ".join(f"{name} {value}" for name, value in found["requires"].items())
    size = sum(found["contents"].values())
    click.echo(f"{artifact}: {size:,} bytes for {', '.join(found['targets'])}; requires {requires}")
    click.echo(f"format {'.'.join(map(str, found['format']))}, checked by {found['checked_by']}")
    if found["signed_by"] is not None:
        click.echo(f"signed by {found['signed_by']}" + ("" if signed_by else " (not checked: --signed-by)"))
    _say_program(found)
    if "on_gpu" in found:
        click.echo("the program for GPUs:")
        _say_program(found["on_gpu"])
    beside = found["weights_beside"]
    if beside is not None:
        click.echo(f"weights beside it in {beside['file']}: {beside['bytes']:,} bytes (not looked at)")
    return 0


def _say_program(program: Mapping[str, Any]) -> None:
    """Its entry points and how many constants it has."""
    for name, entry in program["entry_points"].items():
        click.echo(f"{name}: {entry['kind']}")
        shown = {**entry, "sizes that vary": [_symbol(one) for one in entry["symbols"]]}
        shown["written"] = [entry["inputs"][number] for number in entry["written"]]
        for key in (
            "parameters", "inputs", "sizes that vary", "relations", "written", "operators_through_python"
        ):  # fmt: skip
            if shown[key]:
                click.echo(f"  {key.replace('_', ' ')}")
                click.echo("\n".join(f"    {line}" for line in shown[key]))
    click.echo(f"{len(program['constants'])} constants")


def _symbol(symbol: Mapping[str, Any]) -> str:
    """``batch: 2 to 64``, or ``batch: 2 or more``."""
    until = "or more" if symbol["high"] is None else f"to {symbol['high']}"
    return f"{symbol['name']}: {symbol['low']} {until}"


@click.command(short_help="Sign an artifact with a private key.")
@click.argument("artifact", type=_FILE)
@click.option("--key", required=True, type=_FILE, help="a file with a private key")
@as_json
def sign(artifact: Path, key: Path, as_json: bool) -> int:
    """Sign ARTIFACT, which fxstack.load(..., signed_by=PUBLIC_KEY) then demands.

    Exit status: 0, or 1 if it is refused or there is no key.
    """
    try:
        signed(artifact, key)
        public = inspected(artifact)["signed_by"]
    except (ArtifactError, OSError) as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        say_json({"artifact": str(artifact), "signed_by": public})
    else:
        click.echo(f"{artifact}: signed by {public}")
    return 0


@click.command("new-key", short_help="Write a new pair of keys.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@as_json
def new_key(file: Path, as_json: bool) -> int:
    """Write a new private key to FILE and its public key to FILE.pub, to sign artifacts and caches with.

    Exit status: 0, or 1 if they cannot be written.
    """
    try:
        public = make_key(file)
    except (ArtifactError, OSError) as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        say_json({"private": str(file), "public": str(public)})
    else:
        click.echo(f"{file}: keep it to yourself\n{public}: give it to those who load what you sign")
    return 0
