"""Signatures: who made a file. Ed25519 over the digest of the manifest, which holds the hash of everything else.

Keys are PEM files, as ``openssl genpkey -algorithm ed25519`` makes them. The package ``cryptography`` is needed to sign
and to check; a file whose signature nobody asks for is read without it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from fxstack_artifact.container.hashing import digest
from fxstack_artifact.errors import ArtifactError

NAME = "signature.json"
"""The last entry of a signed file; no manifest lists it."""
_ALGORITHM = "ed25519"
_CONTEXT = b"fxstack signature 1\0"
KeyFiles: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file with a public key, or several of which one must have signed."""


def signature_of(manifest: bytes, key: str | os.PathLike[str]) -> bytes:
    """The content of the signature's entry. ArtifactError FXA114 without a private key in ``key``, a file."""
    crypto = _cryptography()
    try:
        private = crypto.serialization.load_pem_private_key(Path(key).read_bytes(), password=None)
    except (TypeError, ValueError, crypto.UnsupportedAlgorithm) as error:
        raise _no_key(key, "private") from error
    if not isinstance(private, crypto.Private):
        raise _no_key(key, "private")
    signed: bytes = private.sign(_message(manifest))
    data = {"algorithm": _ALGORITHM, "key": _raw(private.public_key()), "signature": signed.hex()}
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def check_signature(manifest: bytes, signature: bytes | None, keys: KeyFiles) -> str:
    """The public key, in hexadecimal digits, that signed a manifest and is one of those in the files ``keys``.

    ArtifactError FXA111 for a file without a signature, FXA112 for another's, FXA113 for one that does not fit, FXA114
    where a key or the package that checks is missing. OSError if a file cannot be read.
    """
    files = [keys] if isinstance(keys, (str, os.PathLike)) else list(keys)
    known = {_raw(_public(file)): file for file in files}
    if not known:
        raise ArtifactError(
            "FXA114", "a signature is demanded and no key is given", "name a file with a public key"
        )
    if signature is None:
        raise ArtifactError(
            "FXA111", "the file is not signed", "get a signed one, or sign it: fxstack sign FILE --key KEY"
        )
    key, signed = _read(signature)
    if key not in known:
        raise ArtifactError(
            "FXA112",
            f"the file is signed with another key ({key[:16]}...) than {', '.join(map(str, known.values()))}",
            "get one from whom you trust, or add that key",
        )
    crypto = _cryptography()
    try:
        _public(known[key]).verify(signed, _message(manifest))
    except crypto.InvalidSignature as error:
        raise ArtifactError(
            "FXA113", "the signature is of something else than this file", "get it again"
        ) from error
    return key


def signer(signature: bytes | None) -> str | None:
    """The key that a signature names, unchecked. ArtifactError FXA113 where it cannot be read."""
    return None if signature is None else _read(signature)[0]


def make_key(path: str | os.PathLike[str]) -> Path:
    """Write a new private key to ``path``, which must not exist, for its owner alone, and the public one beside it, to
    ``path`` with ``.pub``, which is returned."""
    crypto = _cryptography()
    serialization = crypto.serialization
    private = crypto.Private.generate()
    text = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    beside = Path(f"{os.fspath(path)}.pub")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text)
    with open(beside, "xb") as file:
        file.write(public)
    return beside


def _message(manifest: bytes) -> bytes:
    return _CONTEXT + digest(manifest).encode()


def _read(signature: bytes) -> tuple[str, bytes]:
    try:
        data = json.loads(signature)
        key, signed = str(data["key"]), bytes.fromhex(data["signature"])
        if data["algorithm"] == _ALGORITHM and len(data) == 3:
            return key, signed
    except (KeyError, RecursionError, TypeError, ValueError):
        pass
    raise ArtifactError("FXA113", "the signature cannot be read", "get the file again")


def _public(file: str | os.PathLike[str]) -> Any:
    crypto = _cryptography()
    try:
        found = crypto.serialization.load_pem_public_key(Path(file).read_bytes())
    except (ValueError, crypto.UnsupportedAlgorithm) as error:
        raise _no_key(file, "public") from error
    if not isinstance(found, crypto.Public):
        raise _no_key(file, "public")
    return found


def _raw(public: Any) -> str:
    made: str = public.public_bytes_raw().hex()
    return made


def _no_key(file: Any, kind: str) -> ArtifactError:
    return ArtifactError(
        "FXA114", f"{file} holds no {kind} Ed25519 key", "make one: fxstack new-key FILE, or openssl genpkey"
    )


class _Cryptography:
    def __init__(self) -> None:
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

        self.InvalidSignature, self.UnsupportedAlgorithm = InvalidSignature, UnsupportedAlgorithm
        self.serialization: Any = serialization
        self.Private: Any = Ed25519PrivateKey
        self.Public: Any = Ed25519PublicKey


def _cryptography() -> _Cryptography:
    try:
        return _Cryptography()
    except ImportError as error:
        raise ArtifactError(
            "FXA114", "the package cryptography is not installed", "pip install 'fxstack-artifact[signing]'"
        ) from error
