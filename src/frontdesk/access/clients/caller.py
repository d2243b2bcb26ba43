"""The caller of an operation."""

from dataclasses import dataclass, field
from typing import Literal

from frontdesk.domain.consent import Consent, Demands

Grant = Literal["agent", "integration"]


@dataclass(frozen=True, slots=True)
class PatientLimits:
    """What a caller may read of patients; 0 is unlimited. Staff have no limits."""

    per_hour: int = 0  # distinct patients
    per_day: int = 0
    match_misses: int = 0  # of one person, until matching this person is locked
    known_only: bool = False


@dataclass(frozen=True, slots=True)
class Caller:
    client_id: str
    practice_id: int
    practice_slug: str
    scopes: frozenset[str]
    grant: Grant
    directory_version: int  # version of the directory, at most a few seconds old
    patient_limits: PatientLimits = PatientLimits()
    staff_id: str | None = None  # who connected the assistant that calls; None for any other caller
    reachable: frozenset[str] = frozenset()  # an assistant: the scopes that its staff member could agree to
    consent: Consent | None = None  # of every write, where the caller is a person who acts without an assistant
    demands: Demands = field(default_factory=dict)
