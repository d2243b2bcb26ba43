"""Encrypts files with age (https://age-encryption.org) and decrypts them."""

import io
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyrage

from frontdesk.store.embedded.table_data import BackupError

_START = b"age-encryption.org/v1\n"
_MAX_HEADER_BYTES = 64 * 1024
_CHUNK, _TAG, _NONCE = 64 * 1024, 16, 16


def encrypt(plain: io.BufferedRandom, file: Path, recipients: Sequence[pyrage.x25519.Recipient]) -> None:
    """Writes a file of mode 0600, with the rights of the caller, that appears complete or not at all."""
    size = plain.seek(0, os.SEEK_END)
    plain.seek(0)
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")  # mode 0600
    made = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as to:
            pyrage.encrypt_io(plain, to, recipients)
            to.flush()
            os.fsync(to.fileno())
        if made.stat().st_size != _encrypted_size(made, size):  # pyrage ignores a failure to write the last block
            raise BackupError("There is not enough free disk space for the backup.")
        made.rename(file)
    finally:
        made.unlink(missing_ok=True)


def decrypt(
    encrypted: io.BufferedReader, plain: io.BufferedRandom, identities: Sequence[pyrage.x25519.Identity]
) -> None:
    if encrypted.read(len(_START)) != _START:
        raise BackupError("The file is damaged, or it is not a backup of frontdesk.")
    encrypted.seek(0)
    try:
        pyrage.decrypt_io(encrypted, plain, identities)
    except pyrage.DecryptError:
        raise BackupError("The backup cannot be decrypted: it is damaged, or it needs another key.") from None
    except OSError as error:
        if error.errno is not None:  # pyrage's own have no number
            raise
        raise BackupError("The backup is damaged: it was cut short or altered.") from None
    plain.seek(0)


def _encrypted_size(made: Path, size: int) -> int:
    with made.open("rb") as file:
        start = file.read(_MAX_HEADER_BYTES)
    header = start.index(b"\n", start.index(b"\n--- ") + 1) + 1
    chunks = max(1, -(-size // _CHUNK))
    return header + _NONCE + size + chunks * _TAG
