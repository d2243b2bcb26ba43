"""Public ids: a prefix and 22 base62 characters, with at least 128 random bits."""

import re
import secrets

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_LENGTH = 22

APPOINTMENT_ID = re.compile(r"apt_[0-9A-Za-z]{22}\Z")
HOLD_ID = re.compile(r"hld_[0-9A-Za-z]{22}\Z")
PATIENT_ID = re.compile(r"pat_[0-9A-Za-z]{22}\Z")


def new_appointment_id() -> str:
    return "apt_" + _base62()


def new_hold_id() -> str:
    return "hld_" + _base62()


def new_patient_id() -> str:
    return "pat_" + _base62()


def _base62() -> str:
    rest, text = secrets.randbelow(62**_LENGTH), ""
    for _ in range(_LENGTH):
        rest, digit = divmod(rest, 62)
        text += _ALPHABET[digit]
    return text
