"""Slot ids: everything that identifies a slot, and a tag that only this practice's key can make.

Owns the encoding and its key. Refuses to say whether a slot is open. Slots are computed and never stored, so an id must
carry the slot; the tag makes a forged, altered or foreign id as unknown as one that never was. The id is not encrypted:
it says nothing that its holder was not told with it.

The tag is a CBC-MAC of two AES blocks: E(E(header) xor start|duration). All slots of one search share the header, so
one cipher call tags a whole page, where an HMAC would cost one call per slot. CBC-MAC is a sound MAC when no message is
a prefix of another, and here every message has exactly two blocks under a key that serves nothing else. (It would fail
for messages of mixed length: never add a block under the same key.) The tag is cut to 64 bits, which leaves a forger,
who can only try ids against the running service, a chance of one in 2**64 per try.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hmac import compare_digest
from struct import Struct, pack

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_KEY_BYTES = 32
_FORM = re.compile(r"slt_[A-Za-z0-9_-]{40}")
# The prefix happens to be base64 itself. Whole groups of three bytes leave no padding and no spare bits, so every slot
# has exactly one spelling, and ids encoded together are cut apart at fixed places.
_PREFIX = urlsafe_b64decode("slt_")
_HEADER = Struct(">4I")
_ID = Struct(">3s16sIH8s")
_ID_LENGTH = 44
_START_AT, _TAG_AT, _TAG_BYTES = 19, 25, 8
_BLOCK_BYTES = 16


@dataclass(frozen=True, slots=True)
class SlotRef:
    provider_id: int
    location_id: int
    visit_type_id: int
    procedure_id: int
    start: int
    duration_minutes: int


class SlotIds:
    """Writes under one key; still reads ids that older keys wrote."""

    __slots__ = ("_ciphers",)

    def __init__(self, key: bytes, previous: Sequence[bytes] = ()) -> None:
        keys = (key, *previous)
        if any(len(each) != _KEY_BYTES for each in keys):
            raise ValueError(f"a slot id key has {_KEY_BYTES} bytes")
        self._ciphers = tuple(_block_cipher(each) for each in keys)

    def encode_many(
        self,
        provider_id: int,
        location_id: int,
        visit_type_id: int,
        procedure_id: int,
        duration_minutes: int,
        starts: Sequence[int],
    ) -> list[str]:
        count = len(starts)
        header = _HEADER.pack(provider_id, location_id, visit_type_id, procedure_id)
        encrypt = self._ciphers[0].encryptor().update
        chained = _chained(encrypt(header), 0, duration_minutes)
        start_mask = int.from_bytes(chained[:4], "big")
        blocks = bytearray(chained * count)
        _write_column(blocks, _BLOCK_BYTES, 0, pack(f">{count}I", *[start ^ start_mask for start in starts]), 4, 4)
        ids = bytearray(_ID.pack(_PREFIX, header, 0, duration_minutes, b"") * count)
        _write_column(ids, _ID.size, _START_AT, pack(f">{count}I", *starts), 4, 4)
        _write_column(ids, _ID.size, _TAG_AT, encrypt(blocks), _BLOCK_BYTES, _TAG_BYTES)
        text = urlsafe_b64encode(ids).decode("ascii")
        return [text[at : at + _ID_LENGTH] for at in range(0, len(text), _ID_LENGTH)]

    def decode(self, text: str) -> SlotRef | None:
        """The slot of an id that this practice wrote; None for any other text."""
        if not _FORM.fullmatch(text):
            return None
        _, header, start, duration_minutes, tag = _ID.unpack(urlsafe_b64decode(text))
        for cipher in self._ciphers:
            encrypt = cipher.encryptor().update
            expected = encrypt(_chained(encrypt(header), start, duration_minutes))[:_TAG_BYTES]
            if compare_digest(expected, tag):
                provider_id, location_id, visit_type_id, procedure_id = _HEADER.unpack(header)
                return SlotRef(provider_id, location_id, visit_type_id, procedure_id, start, duration_minutes)
        return None


def practice_key(master: bytes, practice_id: int) -> bytes:
    """The slot id key of one practice: ids of one practice mean nothing to another."""
    info = b"frontdesk slot ids of practice %d" % practice_id
    return HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=None, info=info).derive(master)


def _block_cipher(key: bytes) -> Cipher[modes.ECB]:
    return Cipher(algorithms.AES(key), modes.ECB())  # noqa: S305 - bare blocks are what CBC-MAC is made of


def _chained(encrypted_header: bytes, start: int, duration_minutes: int) -> bytes:
    """What is encrypted second: the encrypted header xor the block of start, duration and zeros."""
    second = start << 96 | duration_minutes << 80
    return (int.from_bytes(encrypted_header, "big") ^ second).to_bytes(_BLOCK_BYTES, "big")


def _write_column(rows: bytearray, width: int, at: int, values: bytes, stride: int, size: int) -> None:
    """Puts `size` bytes of each value into each row: one slice per byte for the whole page, not one call per row."""
    for byte in range(size):
        rows[at + byte :: width] = values[byte::stride]
