"""Slot ids: an encoding of everything that identifies a slot, authenticated with a key of the practice.

The tag is a CBC-MAC of two AES blocks, E(E(header) xor start|duration), cut to 64 bits. All slots of a search share the
header, so one cipher call tags a whole page. CBC-MAC is secure only for messages of a fixed length: never add a block
under the same key.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hmac import compare_digest
from struct import Struct, pack

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_KEY_BYTES = 32
_FORM = re.compile(r"slt_[A-Za-z0-9_-]{40}")
# The prefix is valid base64. Groups of three bytes leave no padding, so every slot has exactly one encoding, and ids
# that are encoded together can be split at fixed positions.
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
    """Encodes with one key; decodes ids of previous keys, too."""

    __slots__ = ("_encrypts",)

    def __init__(self, key: bytes, previous: Sequence[bytes] = ()) -> None:
        keys = (key, *previous)
        if any(len(each) != _KEY_BYTES for each in keys):
            raise ValueError(f"a slot id key has {_KEY_BYTES} bytes")
        self._encrypts = tuple(_block_cipher(each) for each in keys)

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
        encrypt = self._encrypts[0]
        chained = _chained(encrypt(header), 0, duration_minutes)
        start_mask = int.from_bytes(chained[:4], "big")
        blocks = bytearray(chained * count)
        _write_column(blocks, _BLOCK_BYTES, 0, pack(f">{count}I", *[start ^ start_mask for start in starts]), 4, 4)
        ids = bytearray(_ID.pack(_PREFIX, header, 0, duration_minutes, b"") * count)
        _write_column(ids, _ID.size, _START_AT, pack(f">{count}I", *starts), 4, 4)
        _write_column(ids, _ID.size, _TAG_AT, encrypt(blocks), _BLOCK_BYTES, _TAG_BYTES)
        text = urlsafe_b64encode(ids).decode("ascii")
        return [text[at : at + _ID_LENGTH] for at in range(0, len(text), _ID_LENGTH)]

    def encode(self, slot: SlotRef) -> str:
        ids = (slot.provider_id, slot.location_id, slot.visit_type_id, slot.procedure_id)
        return self.encode_many(*ids, slot.duration_minutes, [slot.start])[0]

    def decode(self, text: str) -> SlotRef | None:
        """The slot of an id of this practice; None for any other text."""
        if not _FORM.fullmatch(text):
            return None
        _, header, start, duration_minutes, tag = _ID.unpack(urlsafe_b64decode(text))
        for encrypt in self._encrypts:
            expected = encrypt(_chained(encrypt(header), start, duration_minutes))[:_TAG_BYTES]
            if compare_digest(expected, tag):
                provider_id, location_id, visit_type_id, procedure_id = _HEADER.unpack(header)
                return SlotRef(provider_id, location_id, visit_type_id, procedure_id, start, duration_minutes)
        return None


def practice_key(master: bytes, practice_id: int) -> bytes:
    """The slot id key of one practice."""
    info = b"frontdesk slot ids of practice %d" % practice_id
    return HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=None, info=info).derive(master)


def _block_cipher(key: bytes) -> Callable[[bytes | bytearray], bytes]:
    """Encrypts whole blocks, each by itself: made once, because making it costs more than a slot id."""
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update  # noqa: S305 - CBC-MAC is built from single blocks


def _chained(encrypted_header: bytes, start: int, duration_minutes: int) -> bytes:
    """The second block: the encrypted header xor start, duration and zeros."""
    second = start << 96 | duration_minutes << 80
    return (int.from_bytes(encrypted_header, "big") ^ second).to_bytes(_BLOCK_BYTES, "big")


def _write_column(rows: bytearray, width: int, at: int, values: bytes, stride: int, size: int) -> None:
    """Write `size` bytes of each value into each row. A slice per byte is faster than a call per row."""
    for byte in range(size):
        rows[at + byte :: width] = values[byte::stride]
