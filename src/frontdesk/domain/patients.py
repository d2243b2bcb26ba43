"""People as the practice knows them: how they are normalised for matching, and when two records are the same person."""

from dataclasses import dataclass
from datetime import date

from frontdesk.domain.names import digits, words

SHORTEST_STORED_MATCH = 7  # stored numbers shorter than this must contain the given one, never the reverse


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
    def kind(self) -> str:
        return "existing" if self.seen else "new"


@dataclass(frozen=True, slots=True)
class Contact:
    """Who a patient is, at a glance: enough for a calendar."""

    first_name: str
    last_name: str
    dob: date
    phone: str

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}"


def name_key(first_name: str, last_name: str) -> str:
    """What names are compared by: folded letters and digits of the first and of the last name."""
    return f"{''.join(words(first_name))}|{''.join(words(last_name))}"


def same_phone(given: str, stored: str) -> bool:
    """Whether one number's digits contain the other's, so that a country code does no harm.

    The store asks the same question in SQL (`match_patients`); a test holds the two together.
    """
    asked, kept = digits(given), digits(stored)
    return asked in kept or (len(kept) >= SHORTEST_STORED_MATCH and kept in asked)
