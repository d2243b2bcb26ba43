"""Public ids: a prefix and base62 characters, of which 22 have at least 128 random bits."""

import re
import secrets

_ALPHABET = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LENGTH = 22
# Every character stands for four of the 256 values of a byte; the eight that are left over are skipped, so that all
# characters are equally likely.
_CHARACTERS = (_ALPHABET * 5)[:256]
_SURPLUS = bytes(range(4 * len(_ALPHABET), 256))

# As regular expressions, without anchors.
_RANDOM = f"[0-9A-Za-z]{{{_LENGTH}}}"
APPOINTMENT_FORM = f"apt_{_RANDOM}"
APPLICATION_FORM = f"app_{_RANDOM}"
HOLD_FORM = f"hld_{_RANDOM}"
PATIENT_FORM = f"pat_{_RANDOM}"

APPOINTMENT_ID = re.compile(rf"{APPOINTMENT_FORM}\Z")
HOLD_ID = re.compile(rf"{HOLD_FORM}\Z")
PATIENT_ID = re.compile(rf"{PATIENT_FORM}\Z")


def new_appointment_id() -> str:
    return "apt_" + random_base62(_LENGTH)


def new_hold_id() -> str:
    return "hld_" + random_base62(_LENGTH)


def new_patient_id() -> str:
    return "pat_" + random_base62(_LENGTH)


def random_base62(length: int) -> str:
    text = b""
    while len(text) < length:
        text += secrets.token_bytes(32).translate(_CHARACTERS, _SURPLUS)
    return text[:length].decode("ascii")
