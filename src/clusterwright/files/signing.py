"""Ed25519 keys in files (RFC 8032), and signatures over bytes."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
    load_ssh_public_key,
)

from clusterwright.lib.errors import InvalidInput, Place, Problem, Unavailable


def create_key(path: Path) -> None:
    """Write a new private key that only its owner may read; a key that is there stays.

    Raises:
        Unavailable: when it cannot be written.
    """
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    except OSError as error:
        raise Unavailable(f"{path}: the key cannot be written: {error.strerror or error}") from None
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(pem)
        stream.flush()
        os.fsync(stream.fileno())


def load_private_key(path: Path) -> Ed25519PrivateKey:
    """The private key of a PEM file; InvalidInput when it is none, or is protected by a password."""
    data = _read(path)
    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _fault(path, f"is no private key in PEM form without a password: {error}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise _fault(path, "is no Ed25519 key; openssl genpkey -algorithm ed25519 makes one")
    return key


def load_public_key(path: Path) -> bytes:
    """The 32 bytes of the public key in a file: PEM (public, or private) or OpenSSH; InvalidInput otherwise."""
    data = _read(path)
    key: object = None
    try:
        if data.startswith(b"ssh-"):
            key = load_ssh_public_key(data)
        elif b"PRIVATE KEY" in data:
            key = load_private_key(path).public_key()
        else:
            key = load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise _fault(path, "is no Ed25519 public key (PEM or OpenSSH)")
    return public_bytes(key)


def public_bytes(key: Ed25519PublicKey) -> bytes:
    """The 32 bytes of a public key."""
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw)


def public_pem(key: bytes) -> str:
    """A public key of 32 bytes as PEM."""
    return (
        Ed25519PublicKey.from_public_bytes(key).public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    )


def fingerprint(key: bytes) -> str:
    """SHA-256 over the 32 bytes of a public key, as `sha256:` and hex digits."""
    return f"sha256:{hashlib.sha256(key).hexdigest()}"


def signature_fits(key: bytes, signature: bytes, data: bytes) -> bool:
    """Whether the signature over the data was made with the private key to this public one."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(64 * 1024)
    except OSError as error:
        raise _fault(path, f"cannot be read: {error.strerror or error}") from None


def _fault(path: Path, message: str) -> InvalidInput:
    return InvalidInput(Problem(Place(str(path)), "", message))
