"""Encrypts keys at rest with the operator's secret key.

The first secret encrypts and all secrets decrypt, which allows rotation.
"""

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from frontdesk.settings import Settings

_MIN_SECRET_LENGTH = 32
_NONCE = 12


class SecretKeyError(Exception):
    """The secret key cannot be used; the message tells the operator what to do."""


class KeyCipher:
    """AES-256-GCM. The first byte of an encrypted text identifies the key."""

    def __init__(self, secrets_newest_first: list[str]) -> None:
        self._keys = [_key_and_cipher(secret) for secret in secrets_newest_first]

    def encrypt(self, plain: bytes, context: bytes) -> bytes:
        """`context` is authenticated: the result can only be opened with the same context."""
        key_id, cipher = self._keys[0]
        nonce = secrets.token_bytes(_NONCE)
        return key_id + nonce + cipher.encrypt(nonce, plain, context)

    def decrypt(self, encrypted: bytes, context: bytes) -> bytes:
        nonce, text = encrypted[1 : 1 + _NONCE], encrypted[1 + _NONCE :]
        for key_id, cipher in self._keys:
            # Two secrets may share this byte; decryption decides.
            if key_id == encrypted[:1] and len(text) >= _NONCE:
                try:
                    return cipher.decrypt(nonce, text, context)
                except InvalidTag:
                    continue
        raise SecretKeyError(
            "The keys in the database were encrypted with another secret key: set FRONTDESK_SECRET_KEY to that one, or "
            "to the new and the old one separated by a comma."
        )

    def is_encrypted_with_newest(self, encrypted: bytes) -> bool:
        """Whether it was encrypted with the newest secret."""
        return encrypted[:1] == self._keys[0][0]


def load_secret_key(settings: Settings) -> KeyCipher:
    """Loads the secret key from FRONTDESK_SECRET_KEY, else from a file in the data directory, which is created.

    `frontdesk.access.keys.ring.cipher_for_database` creates none for a database that already has keys.
    """
    if not has_secret_key(settings):
        path = settings.secret_key_file
        with _explained(path):
            _create(path)
    return KeyCipher(read_secrets(settings))


def has_secret_key(settings: Settings) -> bool:
    return settings.secret_key is not None or settings.secret_key_file.exists()


def read_secrets(settings: Settings) -> list[str]:
    """The operator's secrets, newest first. Creates none."""
    if settings.secret_key is not None:
        return _parse(settings.secret_key, "FRONTDESK_SECRET_KEY")
    path = settings.secret_key_file
    if not path.exists():
        raise SecretKeyError(
            f"The secret key file {path} is missing: put back your copy (mode 0600), or set FRONTDESK_SECRET_KEY."
        )
    with _explained(path):
        text = _read_private(path)
    return _parse(text, f"The secret key file {path}")


def derive(secret: str, purpose: bytes, length: int = 32) -> bytes:
    return HKDF(SHA256(), length, salt=None, info=purpose).derive(secret.encode())


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SecretKeyError(f"The secret key file {path} cannot be used: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SecretKeyError(f"The secret key file {path} does not hold text.") from error


def _key_and_cipher(secret: str) -> tuple[bytes, AESGCM]:
    key = derive(secret, b"frontdesk keys at rest", 33)
    return key[:1], AESGCM(key[1:])


def _parse(text: str, source: str) -> list[str]:
    parts = [part.strip() for part in text.split(",")]
    if any(len(part) < _MIN_SECRET_LENGTH for part in parts):
        raise SecretKeyError(
            f"{source} must hold at least {_MIN_SECRET_LENGTH} characters, or several such secrets separated by "
            "commas, the newest first."
        )
    return parts


def _create(path: Path) -> None:
    """Create the file atomically; if several processes start, one wins."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, made = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name}."
    )  # mode 0600, and never an existing file
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            path.hardlink_to(made)
        except FileExistsError:
            return
        folder = os.open(path.parent, os.O_RDONLY)  # a secret lost in a power failure would make all keys unreadable
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        Path(made).unlink()


def _read_private(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            raise SecretKeyError(f"The secret key file {path} is open to other accounts: run chmod 600 {path}.")
        return file.read()
