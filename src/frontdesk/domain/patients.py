"""The patient record, and the rules for matching patients by name and phone."""

from dataclasses import dataclass
from datetime import date
from typing import Literal

from frontdesk.domain.names import digits, words

MIN_WHOLE_NUMBER = 7  # a shorter stored number never matches as a part of the given one
PhoneMatch = Literal["anywhere", "ending"]


@dataclass(frozen=True, slots=True)
class Patient:
    id: str
    number: int
    first_name: str
    last_name: str
    dob: date
    phone: str
    email: str | None
    seen: bool

    @property
    def patient_kind(self) -> str:
        return "existing" if self.seen else "new"


@dataclass(frozen=True, slots=True)
class Contact:
    """The patient data that a calendar shows."""

    first_name: str
    last_name: str
    dob: date
    phone: str

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}"


def name_key(first_name: str, last_name: str) -> str:
    """The stored key, by which the database finds names that may be the same: letters and digits without marks."""
    return _key(first_name, last_name, marks=False)


def spelling_key(first_name: str, last_name: str) -> str:
    """Names are the same person's if these keys are equal. Never stored: nodes of two releases may disagree on it."""
    return _key(first_name, last_name, marks=True)


def _key(first_name: str, last_name: str, *, marks: bool) -> str:
    return f"{''.join(words(first_name, marks=marks))}|{''.join(words(last_name, marks=marks))}"


def same_phone(given: str, stored: str, rule: PhoneMatch = "anywhere") -> bool:
    """Whether one number contains the other, so that a country code does not matter. Without digits nothing matches.
    By their ending, fewer than seven digits must be the last ones: an area code is no proof of identity.

    `match_patients` does the same in SQL; a test compares the two.
    """
    asked, kept = digits(given), digits(stored)
    if rule == "ending" and len(asked) < MIN_WHOLE_NUMBER:
        return asked != "" and kept.endswith(asked)
    return asked != "" and (asked in kept or (len(kept) >= MIN_WHOLE_NUMBER and kept in asked))
