import re
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from frontdesk.domain.slot_ids import SlotIds, SlotRef, practice_key
from tests.support.properties import examples

KEY = bytes(range(32))
IDS = SlotIds(KEY)
STARTS = [29_900_000 + 15 * step for step in range(50)]
ID = IDS.encode_many(10, 1, 20, 100, 30, STARTS[:1])[0]

numbers = st.integers(1, 2**31 - 1)


def reference(slot: SlotRef, key: bytes = KEY) -> str:
    """The id as its definition reads, one block at a time."""
    encryptor = Cipher(algorithms.AES(key), modes.CBC(bytes(16))).encryptor()
    ids = (slot.provider_id, slot.location_id, slot.visit_type_id, slot.procedure_id)
    header = b"".join(number.to_bytes(4, "big") for number in ids)
    rest = slot.start.to_bytes(4, "big") + slot.duration_minutes.to_bytes(2, "big")
    tag = encryptor.update(header + rest + bytes(10))[16:24]
    return "slt_" + urlsafe_b64encode(header + rest + tag).decode()


@examples(50)
@given(numbers, numbers, numbers, numbers, st.integers(1, 2**16 - 1), st.lists(st.integers(0, 2**32 - 1), max_size=9))
def test_every_id_is_the_defined_encoding_and_reads_back(
    provider: int, location: int, visit_type: int, procedure: int, duration: int, starts: list[int]
) -> None:
    slots = [SlotRef(provider, location, visit_type, procedure, start, duration) for start in starts]
    ids = IDS.encode_many(provider, location, visit_type, procedure, duration, starts)
    assert ids == [reference(slot) for slot in slots]
    assert [IDS.decode(each) for each in ids] == slots


def test_an_id_has_a_fixed_length_and_a_plain_alphabet() -> None:
    for text in IDS.encode_many(2**31 - 1, 1, 20, 100, 30, STARTS):
        assert re.fullmatch(r"slt_[A-Za-z0-9_-]{40}", text)


def test_a_page_of_ids_has_no_two_alike() -> None:
    assert len(set(IDS.encode_many(10, 1, 20, 100, 30, STARTS))) == len(STARTS)


def test_an_altered_bit_anywhere_makes_an_id_unknown() -> None:
    raw = urlsafe_b64decode(ID[4:])
    for bit in range(len(raw) * 8):
        altered = bytearray(raw)
        altered[bit // 8] ^= 1 << bit % 8
        assert IDS.decode("slt_" + urlsafe_b64encode(altered).decode()) is None


def test_an_altered_character_anywhere_makes_an_id_unknown() -> None:
    for at, old in enumerate(ID):
        for new in "Aa9_-+/= é٣\n\x00":
            if new != old:
                assert IDS.decode(ID[:at] + new + ID[at + 1 :]) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "slt_",
        ID[:-1],
        ID + "A",
        ID + "=",
        ID + "\n",
        " " + ID,
        ID[4:],
        ID.swapcase(),
        ID.replace("slt_", "apt_"),
        ID.replace("slt_", "slt/"),
        "slt_" + "A" * 40,
        "slt_" + "é" * 40,
        "slt_" + "\ud800" * 40,
        "slt_" + "１" * 40,
        "slt_" * 100_000,
    ],
    ids=range(16),
)
def test_malformed_text_is_unknown(text: str) -> None:
    assert IDS.decode(text) is None


@examples(50)
@given(st.one_of(st.text(), st.text("slt_ABCabc019-", max_size=60), st.binary(min_size=30, max_size=30)))
def test_no_text_makes_reading_fail_and_made_up_ids_are_unknown(made_up: str | bytes) -> None:
    text = made_up if isinstance(made_up, str) else "slt_" + urlsafe_b64encode(made_up).decode()
    assert IDS.decode(text) is None


def test_the_tag_of_one_slot_does_not_serve_another() -> None:
    one, other = (urlsafe_b64decode(each[4:]) for each in IDS.encode_many(10, 1, 20, 100, 30, STARTS[:2]))
    assert IDS.decode("slt_" + urlsafe_b64encode(one[:22] + other[22:]).decode()) is None


def test_an_id_of_another_practice_is_unknown() -> None:
    master = bytes(32)
    mine, theirs = SlotIds(practice_key(master, 1)), SlotIds(practice_key(master, 2))
    (text,) = theirs.encode_many(10, 1, 20, 100, 30, [STARTS[0]])
    assert theirs.decode(text) == SlotRef(10, 1, 20, 100, STARTS[0], 30)
    assert mine.decode(text) is None


def test_ids_of_an_older_key_are_still_read_but_no_longer_written() -> None:
    new_key = bytes(reversed(KEY))
    rotated = SlotIds(new_key, previous=[bytes(32), KEY])
    assert rotated.decode(ID) == IDS.decode(ID) is not None
    (text,) = rotated.encode_many(10, 1, 20, 100, 30, STARTS[:1])
    assert text == reference(SlotRef(10, 1, 20, 100, STARTS[0], 30), new_key)
    assert IDS.decode(text) is None


def test_practice_keys_are_repeatable_and_differ_by_practice_and_master() -> None:
    keys = {practice_key(master, practice) for master in (bytes(32), KEY) for practice in (1, 2, 12)}
    assert len(keys) == 6
    assert all(len(key) == 32 for key in keys)
    assert practice_key(KEY, 1) == practice_key(KEY, 1)


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_a_key_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        SlotIds(bytes(size))
    with pytest.raises(ValueError, match="32 bytes"):
        SlotIds(KEY, previous=[bytes(size)])
