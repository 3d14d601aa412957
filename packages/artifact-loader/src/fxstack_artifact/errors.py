"""Errors with a stable code: files that are refused, and calls that do not fit."""

from __future__ import annotations


class ArtifactError(Exception):
    """A file is refused, or an artifact cannot be used here.

    FXA101 no artifact; FXA102 damaged or cut off; FXA103 changed; FXA104 of another version of the format; FXA105 for
    another system, processor or GPU; FXA106 for another torch; FXA107 torch lacks a function; FXA108 its program
    cannot be read; FXA109 a native object cannot be loaded; FXA110 it needs Python; FXA111 not signed; FXA112 signed
    with another key; FXA113 its signature is of something else; FXA114 there is no key, or nothing to check with;
    FXA115 it is for a GPU, and none can be used; FXA116 it is not for the device that was asked for; FXA201 weights
    are missing or others than the program was made for; FXA202 there is no entry point of that name; FXA203 weights
    would be moved or converted; FXA204 there is no entry point for training, or for evaluation.
    """

    def __init__(self, code: str, what: str, action: str = "") -> None:
        self.code = code
        self.what = what
        self.action = action
        super().__init__(code, what)

    def __str__(self) -> str:
        return f"[{self.code}] {self.what}" + (f"\n  to do: {self.action}" if self.action else "")


class ContractError(ArtifactError, ValueError):
    """A call does not fit the contract of an entry point; nothing was computed or written.

    FXA301 arguments are missing, too many or of another structure; FXA302 of another type; FXA303 dtype; FXA304 device;
    FXA305 sizes; FXA306 strides; FXA307 sizes that do not fit each other; FXA308 a gradient would be needed; FXA309
    memory is shared with what is written; FXA310 no plain strided tensor; FXA311 another constant.
    """


class GradientError(ArtifactError, RuntimeError):
    """A backward that an artifact does not have; no gradient was handed on.

    FXA401 second derivatives; FXA402 the gradient between two results; FXA403 NaN that may come of results without a
    gradient; FXA404 hooks of an input that the backward does not reach; FXA405 a gradient that is no plain tensor.
    """


def damaged(what: str) -> ArtifactError:
    """FXA102."""
    return ArtifactError("FXA102", f"the artifact is damaged: {what}", "copy or make it again")


def changed(what: str) -> ArtifactError:
    """FXA103."""
    return ArtifactError("FXA103", f"{what} was changed", "copy or make it again")


def unreadable(what: str) -> ArtifactError:
    """FXA108: hashes are right, so that whoever wrote the file wrote something else than this loader reads."""
    return ArtifactError("FXA108", f"the artifact's program cannot be read: {what}", "make it again")
