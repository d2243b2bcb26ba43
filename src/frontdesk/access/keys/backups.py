"""Derives the keys that encrypt and authenticate backups from the operator's secret key."""

import pyrage

from frontdesk.access.keys.encryption import derive, read_secrets
from frontdesk.settings import Settings
from frontdesk.store.embedded.backup_file import BackupKeys

_BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BECH32_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)


def read_backup_keys(settings: Settings) -> list[BackupKeys]:
    """Derives the keys of backups from each secret, newest first."""
    return [
        BackupKeys(
            identity=pyrage.x25519.Identity.from_str(_age_identity(derive(secret, b"frontdesk backup encryption"))),
            mac=derive(secret, b"frontdesk backup authentication"),
        )
        for secret in read_secrets(settings)
    ]


def _age_identity(key: bytes) -> str:
    """The key as age writes it: Bech32 (BIP 173)."""
    prefix = "age-secret-key-"
    bits = "".join(f"{byte:08b}" for byte in key)
    data = [int(bits[at : at + 5].ljust(5, "0"), 2) for at in range(0, len(bits), 5)]
    expanded = [ord(letter) >> 5 for letter in prefix] + [0] + [ord(letter) & 31 for letter in prefix]
    remainder = _polymod([*expanded, *data, 0, 0, 0, 0, 0, 0]) ^ 1
    check = [remainder >> 5 * (5 - at) & 31 for at in range(6)]
    return (prefix + "1" + "".join(_BECH32[value] for value in data + check)).upper()


def _polymod(values: list[int]) -> int:
    remainder = 1
    for value in values:
        top = remainder >> 25
        remainder = (remainder & 0x1FFFFFF) << 5 ^ value
        for at, term in enumerate(_BECH32_GENERATOR):
            remainder ^= term if top >> at & 1 else 0
    return remainder
