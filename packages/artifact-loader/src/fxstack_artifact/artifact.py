"""``load`` and ``inspect``: a file is checked, then its constants are mapped and its native objects loaded."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import torch

from fxstack_artifact import _native
from fxstack_artifact.container.manifest import check_requirements, has_both, is_of_gpu
from fxstack_artifact.container.reading import Archive, open_archive
from fxstack_artifact.container.signing import KeyFiles, signer
from fxstack_artifact.container.targets import targets_here
from fxstack_artifact.errors import ArtifactError, unreadable
from fxstack_artifact.module import WeightsModule

PROGRAM, GPU_PROGRAM, WEIGHTS = "program.json", "program.gpu.json", "weights.safetensors"
"""Entries of the file. One for processors and GPUs has a program for each, which share what is in its weights."""
INFERENCE, TRAINING = "inference", "training"
"""Kinds of entry points."""


class Artifact(WeightsModule):
    """A loaded artifact: its entry points by name; called itself, it calls the one named ``forward``, or the only one.

    It is a module with the parameters and buffers that its graphs compute with, by their names in the model.
    ``target`` is the processor's level, or the GPU's architecture, that its native objects are for.
    """

    def __init__(
        self,
        entry_points: Mapping[str, Any],
        target: str,
        described: Sequence[Mapping[str, Any]],
        constants: Sequence[torch.Tensor],
    ) -> None:
        super().__init__(described, constants)
        first = next(iter(entry_points.values()))
        default = entry_points.get("forward", first if len(entry_points) == 1 else None)
        modes = {entry.training for entry in entry_points.values()} - {None}
        mode = None if default is None else default.training
        self._set(
            _entry_points=dict(entry_points),
            target=target,
            _default=default,
            training=mode if mode is not None else modes == {True},
        )

    _entry_points: dict[str, Any]
    _default: Any
    target: str

    def _set(self, **attributes: Any) -> None:
        """Attributes of its own, which a model's modules may have the names of."""
        self.__dict__.update(attributes)

    @property
    def entry_points(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self._entry_points)

    def __getitem__(self, name: str) -> Any:
        """The entry point of that name. ArtifactError FXA202 lists the names if there is none."""
        found = self._entry_points.get(name)
        if found is None:
            raise ArtifactError(
                "FXA202", f"there is no entry point {name!r}", f"use one of: {', '.join(self._entry_points)}"
            )
        return found

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run ``forward``, the only entry point, or the one for the module's mode."""
        if self._default is None:
            raise ArtifactError(
                "FXA202",
                "there are several entry points",
                f"use artifact[name]: {', '.join(self._entry_points)}",
            )
        return self._default(*args, **kwargs)

    def train(self, mode: bool = True) -> Artifact:
        """Call the entry point that was made of the model in this mode from now on. ArtifactError FXA204 if there is
        none, for an artifact computes in the mode in which its model was."""
        if mode == self.training:
            return self
        fitting = [entry for entry in self._entry_points.values() if entry.training in (mode, None)]
        if len(fitting) != 1:
            wanted = "training" if mode else "evaluation"
            what = "several entry points were" if fitting else "no entry point was"
            raise ArtifactError(
                "FXA204",
                f"{what} made of the model in {wanted} mode",
                f"call one by its name: {', '.join(entry.name for entry in fitting)}"
                if fitting
                else "export the model in both modes, as two entry points",
            )
        self._set(_default=fitting[0], training=mode)
        return self

    def __repr__(self) -> str:
        return f"<Artifact of {', '.join(self._entry_points)} for {self.target}>"


Weights: TypeAlias = Mapping[str, torch.Tensor] | str | os.PathLike[str]
"""Tensors by the names of a model's parameters and buffers, or a safetensors file of them."""


def load(
    path: str | os.PathLike[str],
    *,
    device: str | torch.device | None = None,
    weights: Weights | None = None,
    copy: bool = False,
    signed_by: KeyFiles | None = None,
    remember: bool = False,
) -> Artifact:
    """The artifact at ``path``, all of it checked before any of it is used.

    ``device``: ``"cpu"`` or ``"cuda"`` (GPU 0), where it is for both; by itself it is the GPU if torch can use one.
    ``weights`` take the place of those in the file or beside it, and are needed where it was written without: the
    artifact computes with the very tensors where their strides are right. ``copy``: the files' content is read;
    otherwise weights stay in the file, which is mapped: whoever changes it then changes them. ``signed_by``: a file
    with a public key, or several, of which one must have signed the artifact; nothing else of it is looked at before.
    ``remember``: note that the file was checked, and do not hash its weights again while the system's times say that it
    has not changed (``container/remembered.py``, which says what that leaves to trust in the disk). Weights beside the
    file are hashed each time. OSError if a file cannot be opened;
    ArtifactError (FXA1xx, FXA2xx) if it is refused.
    """
    archive = open_archive(path, copy=copy)
    if signed_by is not None:
        archive.check_signature(signed_by)
    here = targets_here(archive.manifest, device)
    target = check_requirements(archive.manifest, _native.ENTRY_ABI, torch.__version__, here)
    described = program_for(target, archive.manifest.targets)
    copies = archive.contents(
        lambda name: name == described or name.endswith(f".{target}.so"),
        remembered=(lambda name: name == WEIGHTS) if remember else None,
    )
    program = _program(copies, described)
    try:
        bound = _with_those_beside(path, program, _bound(weights), copy)
        return _assemble(archive, copies, program, target, bound)
    except ArtifactError:
        raise
    except (AttributeError, LookupError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise unreadable(repr(error)) from error


def _assemble(
    archive: Archive,
    copies: Mapping[str, bytes],
    program: Mapping[str, Any],
    target: str,
    bound: Mapping[str, torch.Tensor],
) -> Artifact:
    from fxstack_artifact.program.constants import constants, stored_tensors

    described = program["constants"]
    is_stored = any(item["tensor"] is not None for item in described)
    stored = stored_tensors(archive.buffer, *archive.place(WEIGHTS)) if is_stored else {}
    made = constants(described, stored, archive.buffer, bound)
    names = [str(item["name"]) for item in described]
    found = {
        str(name): _entry_point(str(name), data, made, names, copies, target)
        for name, data in program["entry_points"].items()
    }
    if not found:
        raise unreadable("there is no entry point")
    return Artifact(found, target, described, made)


def _entry_point(
    name: str,
    data: Mapping[str, Any],
    constants: Sequence[torch.Tensor],
    names: Sequence[str],
    copies: Mapping[str, bytes],
    target: str,
) -> Any:
    content = copies[data["graph"]["objects"][target]]
    if data["kind"] == TRAINING:
        from fxstack_artifact.training.entry_point import TrainingEntryPoint

        backward = copies[data["backward"]["graph"]["objects"][target]]
        return TrainingEntryPoint(name, data, constants, names, content, backward)
    if data["kind"] != INFERENCE:
        raise unreadable(f"an entry point for {data['kind']!r}")
    from fxstack_artifact.program.entry_point import EntryPoint

    return EntryPoint(name, data, constants, content)


def _with_those_beside(
    path: str | os.PathLike[str], program: Mapping[str, Any], bound: Mapping[str, torch.Tensor], copy: bool
) -> Mapping[str, torch.Tensor]:
    """``bound``, and what is in a file beside the artifact if the program says so and needs it."""
    missing = [
        item
        for item in program["constants"]
        if item["tensor"] is None and not {item["name"], *item.get("aliases", ())} & bound.keys()
    ]
    if "beside" not in program or not missing:
        return bound
    from fxstack_artifact.program.beside import weights_beside  # for files that are written so

    return {**weights_beside(path, program["beside"], missing, copy=copy), **bound}


def _bound(weights: Weights | None) -> Mapping[str, torch.Tensor]:
    if weights is None or isinstance(weights, Mapping):
        return weights or {}
    from safetensors import SafetensorError, safe_open  # for weights beside the file

    try:
        with safe_open(weights, framework="pt") as file:
            names = file.keys()
            return {name: file.get_tensor(name) for name in names}
    except SafetensorError as error:
        raise ArtifactError("FXA201", f"{weights} is no safetensors file ({error})") from error


def program_for(target: str, targets: Sequence[str]) -> str:
    """The entry of the file that has the program for one of its ``targets``."""
    return GPU_PROGRAM if has_both(targets) and is_of_gpu(target) else PROGRAM


def _program(copies: Mapping[str, bytes], name: str) -> dict[str, Any]:
    try:
        program = json.loads(copies[name])
    except (KeyError, RecursionError, ValueError) as error:
        raise unreadable(repr(error)) from error
    if not isinstance(program, dict):
        raise unreadable("it is no object")
    return program


def inspect(path: str | os.PathLike[str], *, signed_by: KeyFiles | None = None) -> dict[str, Any]:
    """What the artifact at ``path`` is, checked and ready for JSON, on any system; nothing of it is loaded.

    ``format``, ``made_by``, ``requires``, ``targets``, ``contents`` (bytes of each), ``checked_by`` (the kind of their
    hashes: ``blake3`` or ``checksum``), ``entry_points`` (name to ``kind``, ``parameters``, ``inputs``, ``symbols``,
    ``relations``, ``results``, ``written``, ``operators_through_python``), ``constants`` (name, dtype, sizes),
    ``weights_beside`` (the name and bytes of the file beside it that has its weights, which is not looked at), and
    ``signed_by`` (the public key that its signature names, which is checked only if ``signed_by`` is given). A file for
    processors and GPUs has ``on_gpu`` besides: the ``entry_points`` and ``constants`` of the program for GPUs.
    ArtifactError if the file is refused.
    """
    archive = open_archive(path)
    if signed_by is not None:
        archive.check_signature(signed_by)
    manifest, names = archive.manifest, (PROGRAM, GPU_PROGRAM)
    copies = archive.contents(lambda name: name in names)
    from fxstack_artifact.program.description import (
        described_beside,
        described_program,
    )  # reads what running does not need

    try:
        return {
            "format": list(manifest.version),
            "made_by": dict(manifest.made_by),
            "requires": {
                "entry_abi": manifest.entry_abi,
                "torch": manifest.torch,
                "system": manifest.system,
            },
            "targets": list(manifest.targets),
            "signed_by": signer(archive.signature()),
            "checked_by": manifest.kind,
            "contents": {name: content.size for name, content in manifest.contents.items()},
            **described_program(_program(copies, PROGRAM)),
            "weights_beside": described_beside(_program(copies, PROGRAM)),
            **(
                {"on_gpu": described_program(_program(copies, GPU_PROGRAM))}
                if has_both(manifest.targets)
                else {}
            ),
        }
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise unreadable(repr(error)) from error
