"""The caller of an operation."""

from dataclasses import dataclass, field
from typing import Literal

from frontdesk.domain.consent import Consent, Demands
from frontdesk.domain.patients import PhoneMatch

Grant = Literal["agent", "integration"]


@dataclass(frozen=True, slots=True)
class CallerLimits:
    """What a caller may read of patients and write; 0 is unlimited. Staff have no limits."""

    patients_per_hour: int = 0  # distinct patients that it reads
    patients_per_day: int = 0
    match_misses: int = 0  # of one person, until matching this person is locked
    known_patients_only: bool = False
    writes_per_hour: int = 0  # of each kind
    upcoming_per_patient: int = 0  # appointments that it booked for one patient
    phone_match: PhoneMatch = "anywhere"  # where the digits that it gives must stand in a patient's number


@dataclass(frozen=True, slots=True)
class Caller:
    client_id: str
    practice_id: int
    practice_slug: str
    scopes: frozenset[str]
    grant: Grant
    directory_version: int  # version of the directory, at most a few seconds old
    limits: CallerLimits = CallerLimits()
    staff_id: str | None = None  # who connected the assistant that calls; None for any other caller
    reachable: frozenset[str] = frozenset()  # an assistant: the scopes that its staff member could agree to
    consent: Consent | None = None  # of every write, where the caller is a person who acts without an assistant
    demands: Demands = field(default_factory=dict)
    approvals: frozenset[Consent] = frozenset()  # that people can give to a pending write, at this practice
    trusted_to_ask: bool = False  # its host asks people, and what they answer counts as their consent
